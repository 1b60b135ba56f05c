/** How a session continues without a message: what waits in it is asked again, and a run that was cut off continues. */
import { isStored } from '../../contract/requests/request-kinds.ts'
import { AgentServerError } from '../../client/request/agent-server-error.ts'
import type { ConversationHandle } from '../../client/conversation/conversation-handle.ts'
import type { BodyOf } from '../../client/operations/operations.ts'
import type { CallOptions } from '../../client/request/api.ts'
import type { EventOf } from '../../contract/events/event.ts'
import type { Status } from '../../contract/events/status.ts'
import type { OpenRequest } from '../../contract/request.ts'
import { repeatLost } from '../errors/repeat-lost.ts'

export type PendingRequestEvent = EventOf<'RequestOpened'>

/** The state of a session that has stopped. */
export type StoppedSession = {
  readonly status: Status
  /** Seq of the last event at that time. */
  readonly after: number
  /** What still waited then, in the order of the log. A permission request has only the calls without a decision. */
  readonly waiting: readonly PendingRequestEvent[]
}

type Place = { readonly status: Status; readonly last_seq: number }

/** `place`: the session just before. What is asked later is among the events after it. */
export async function readStopped(
  conversation: ConversationHandle,
  { status, last_seq: after }: Place,
  options: CallOptions = {},
): Promise<StoppedSession> {
  const { items } = await conversation.requests.list({}, options)
  // Hooks of clients are not in the log: their streams ask again.
  const open = new Map(items.filter(({ kind }) => isStored(kind)).map((request) => [request.request_id, request]))
  const waiting: PendingRequestEvent[] = []
  const filter = { types: ['RequestOpened'], order: 'desc', before_seq: after + 1, limit: 100 } as const
  if (open.size === 0) return { status, after, waiting }
  for await (const event of conversation.listEvents(filter, options)) {
    const request = open.get(event.request_id)
    if (request) waiting.unshift(withoutDecided(event, request))
    open.delete(event.request_id)
    if (open.size === 0) break
  }
  return { status, after, waiting }
}

/** Keeps the calls that still wait for a decision. */
function withoutDecided(event: PendingRequestEvent, request: OpenRequest): PendingRequestEvent {
  if (event.kind !== 'permission' || request.kind !== 'permission') return event
  const undecidedIds = request.payload.tool_uses
    .filter(({ decision }) => !decision)
    .map(({ tool_use_id }) => tool_use_id)
  const tool_uses = event.payload.tool_uses.filter(({ tool_use_id }) => undecidedIds.includes(tool_use_id))
  return { ...event, tool_use_ids: undecidedIds, payload: { tool_uses } }
}

const isActive = (status: Status): boolean => status === 'running' || status.startsWith('waiting_')

/** The agent has answered after these ends, unless a message came that no run has read. */
export const AT_REST: ReadonlySet<Status> = new Set(['idle', 'finished'])

/** False if only a message can continue the session. */
export async function hasWork(
  conversation: ConversationHandle,
  { status, waiting }: Pick<StoppedSession, 'status' | 'waiting'>,
  options: CallOptions = {},
): Promise<boolean> {
  if (waiting.length > 0 || !AT_REST.has(status)) return true
  const types = ['UserMessage', 'MessageWithdrawn', 'AssistantMessage', 'ToolResult'] as const
  const filter = { types: [...types], order: 'desc', active: true, limit: 100 } as const
  const { items } = await conversation.listEvents(filter, options)
  const own = items.filter((event) => !('parent_tool_use_id' in event))
  const answer = own.find((event) => event.type === 'AssistantMessage')
  const readThrough = answer?.read_through ?? answer?.seq ?? 0
  const withdrawn = new Set(own.flatMap((event) => (event.type === 'MessageWithdrawn' ? event.message_seq : [])))
  const isUnread = ({ type, seq }: (typeof own)[number]) =>
    type === 'UserMessage' && seq > readThrough && !withdrawn.has(seq)
  if (own.some(isUnread)) return true
  return status === 'idle' && own[0]?.type === 'ToolResult'
}

/** True if the agent is at rest, and only subagents in the background wait for decisions: no run is needed for them. */
export async function onlySubagentsWait(
  conversation: ConversationHandle,
  { status, waiting }: Pick<StoppedSession, 'status' | 'waiting'>,
  options: CallOptions = {},
): Promise<boolean> {
  const doSubagentsWait = waiting.some(({ parent_tool_use_id }) => parent_tool_use_id !== undefined)
  return AT_REST.has(status) && doSubagentsWait && !(await hasWork(conversation, { status, waiting: [] }, options))
}

/** A run that another client has started in the meantime is as good. */
const STARTED: ReadonlySet<string> = new Set([
  'already_running',
  'already_continued',
  'waiting_for_confirmation',
  'waiting_for_input',
  'waiting_for_client',
])

/** Starts a run unless one is active, waits, or has begun after the event `after`. Returns its id; undefined if it is not known. */
export async function continueStopped(
  conversation: ConversationHandle,
  { status, after }: Pick<StoppedSession, 'status' | 'after'>,
  body: BodyOf<'runConversation'> = {},
  options: CallOptions = {},
): Promise<string | undefined> {
  if (isActive(status)) return undefined
  try {
    const request = { ...body, after_seq: after, wait: false }
    const { run_id } = await repeatLost(() => conversation.run(request, options), options.signal)
    return run_id
  } catch (error) {
    if (!(error instanceof AgentServerError) || !STARTED.has(error.code)) throw error
    const runId = error.details?.['run_id']
    return typeof runId === 'string' ? runId : undefined
  }
}
