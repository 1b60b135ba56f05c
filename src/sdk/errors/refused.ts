/** Recognises the answers that the server takes of no client: what they answer still waits. */
import type { AgentServerError } from '../../client/request/agent-server-error.ts'

export const isRefused = ({ status }: AgentServerError): boolean => status === 400 || status === 413 || status === 422
