/** Calls a tool of an MCP server, once: whatever happens becomes the outcome of the call. */
import { untilAborted, settlesWithin } from '../../lib/bounded-wait.ts'
import type { ToolContext } from '../../tools/tool.ts'
import type { ToolOutcome } from '../../state/tool-call.ts'
import { failure } from '../../state/tool-call.ts'
import type { McpConnection } from '../connection.ts'
import { reasonOf } from './reason-of.ts'
import type { Session } from '../session.ts'
import type { ShowText } from '../tools/shown-text.ts'
import { CUT_OFF } from '../transports/http-transport.ts'
import { LiveCall } from './live-call.ts'

const DEFAULT_TIMEOUT_S = 300

/** The wait for a server that is connecting, in milliseconds. */
export const CONNECTING_WAIT_MS = 10_000

/** JSON-RPC: the parameters do not fit. */
const INVALID_PARAMS = -32602

const MAX_MESSAGE_CHARS = 2000

/** What to do with a connected server. Rejects with any error. */
export type SessionWork = (session: Session, call: LiveCall) => Promise<ToolOutcome>

/** Never rejects. Nothing is sent a second time. */
export async function callServer(
  connection: McpConnection,
  context: ToolContext,
  show: ShowText,
  work: SessionWork,
): Promise<ToolOutcome> {
  if (connection.status === 'connecting')
    await Promise.race([settlesWithin(CONNECTING_WAIT_MS, connection.tried), untilAborted(context.signal)])
  const { session, name, server } = connection
  if (!session) return failure('failed', notConnected(connection))
  const timeout = server.timeout ?? DEFAULT_TIMEOUT_S
  await using call = new LiveCall(context, timeout * 1000, show)
  try {
    return await work(session, call)
  } catch (error) {
    if (call.wasInterrupted) return failure('interrupted', 'The call was interrupted.')
    if (call.timedOut) return failure('timeout', `The MCP server ${name} did not answer within ${timeout} s.`)
    if (connection.endIfUnauthorized())
      return failure('failed', `The MCP server ${name} refused the call: the user has to authorize it first.`)
    if (session.hasEnded || isCutOff(error))
      return failure(
        'interrupted',
        `The connection to the MCP server ${name} ended during the call. It may have had effects, and was not repeated.`,
      )
    const message = show(reasonOf(error), MAX_MESSAGE_CHARS)
    return failure(
      isInvalid(error) ? 'invalid_input' : 'failed',
      `The MCP server ${name} answered with an error: ${message}`,
    )
  }
}

export function notConnected({ name, status, error }: McpConnection): string {
  if (status === 'needs_auth') return `The MCP server ${name} is not connected: the user has to authorize it first.`
  const why = status === 'failed' && error !== undefined ? `: ${error}` : status === 'failed' ? '' : ' yet'
  return `The MCP server ${name} is not connected${why}.`
}

const isCutOff = (error: unknown): boolean => error instanceof Error && 'code' in error && error.code === CUT_OFF

const isInvalid = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === INVALID_PARAMS
