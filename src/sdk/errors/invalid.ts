/** The error for what cannot be done with these options: nothing was sent. */
import { AgentServerError } from '../../client/request/agent-server-error.ts'

export const invalid = (message: string): AgentServerError => new AgentServerError('invalid_argument', message)
