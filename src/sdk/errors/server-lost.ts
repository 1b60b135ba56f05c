/** The error for the end of another process, which ran the server of a data directory. */
import { AgentServerError } from '../../client/request/agent-server-error.ts'

/** `sessionId`: the session of the query, if it had one by then. */
export const serverLost = (sessionId?: string): AgentServerError =>
  new AgentServerError(
    'server_lost',
    `The process that ran the agents of this data directory has ended. What happened before is stored: continue with the option resume${sessionId === undefined ? ' and the id of the session' : `: "${sessionId}"`}.`,
    { ...(sessionId !== undefined && { details: { session_id: sessionId } }) },
  )

export const isServerLost = (error: unknown): boolean =>
  error instanceof AgentServerError && error.code === 'server_lost'
