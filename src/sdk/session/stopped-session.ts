/** How a session continues without a message: what waits in it is asked again, and a run that was cut off continues. */
import { AgentServerError } from '../../client/agent-server-error.ts'
import type { ConversationHandle } from '../../client/conversation/conversation-handle.ts'
import type { BodyOf } from '../../client/operations/operations.ts'
import type { CallOptions } from '../../client/request/api.ts'
import type { EventOf } from '../../contract/events/event.ts'
import type { Status } from '../../contract/events/status.ts'
import { repeatLost } from '../repeat-lost.ts'

const ASKING_TYPES = ['PermissionRequest', 'UserQuestion', 'NetworkRequest', 'ClientToolCall'] as const

export type AskingEvent = EventOf<(typeof ASKING_TYPES)[number]>

/** Where a session stopped. */
export type Stopped = {
  readonly status: Status
  /** Seq of the last event at that time. */
  readonly after: number
  /** What still waited then, in the order of the log. A `PermissionRequest` has only the calls without a decision. */
  readonly waiting: readonly AskingEvent[]
}

type Place = { readonly status: Status; readonly last_seq: number }

/** `place`: the session just before. What is asked later is among the events after it. */
export async function readStopped(
  conversation: ConversationHandle,
  { status, last_seq: after }: Place,
  options: CallOptions = {},
): Promise<Stopped> {
  const open = await readOpen(conversation, options)
  if (open.size === 0) return { status, after, waiting: [] }
  const waiting: AskingEvent[] = []
  const filter = { types: ASKING_TYPES, order: 'desc', before_seq: after + 1, limit: 100 } as const
  for await (const event of conversation.listEvents(filter, options)) {
    const asked = open.get(idOf(event))?.(event)
    if (asked) waiting.unshift(asked)
    open.delete(idOf(event))
    if (open.size === 0) break
  }
  return { status, after, waiting }
}

function idOf(event: AskingEvent): string {
  switch (event.type) {
    case 'PermissionRequest':
    case 'NetworkRequest':
      return event.request_id
    case 'UserQuestion':
      return event.question_id
    case 'ClientToolCall':
      return event.tool_use_id
    default:
      return event satisfies never
  }
}

type Again = (event: AskingEvent) => AskingEvent

/** By id: how its event is shown again. */
async function readOpen(conversation: ConversationHandle, options: CallOptions): Promise<Map<string, Again>> {
  const { permissions, questions, networkRequests, toolCalls } = conversation
  const [asked, ...others] = await Promise.all([
    permissions.list(options),
    questions.list(options),
    networkRequests.list(options),
    toolCalls.list(options),
  ])
  const [{ items: asking }, { items: connecting }, { items: called }] = others
  const undecided = asked.items.map(({ request_id, tool_uses }) => {
    const left = new Set(tool_uses.filter(({ decision }) => !decision).map(({ tool_use_id }) => tool_use_id))
    return [request_id, onlyCalls(left)] as const
  })
  const ids = [
    ...asking.map(({ question_id }) => question_id),
    ...connecting.map(({ request_id }) => request_id),
    ...called.map(({ tool_use_id }) => tool_use_id),
  ]
  return new Map<string, Again>([...undecided, ...ids.map((id) => [id, (event: AskingEvent) => event] as const)])
}

const onlyCalls =
  (ids: ReadonlySet<string>): Again =>
  (event) =>
    event.type === 'PermissionRequest'
      ? { ...event, tool_uses: event.tool_uses.filter(({ tool_use_id }) => ids.has(tool_use_id)) }
      : event

const isActive = (status: Status): boolean => status === 'running' || status.startsWith('waiting_')

/** After these ends the agent has answered, unless a message came that no run has read. */
export const AT_REST: ReadonlySet<Status> = new Set(['idle', 'finished'])

/** False if only a message can continue the session. */
export async function hasWork(
  conversation: ConversationHandle,
  { status, waiting }: Pick<Stopped, 'status' | 'waiting'>,
  options: CallOptions = {},
): Promise<boolean> {
  if (waiting.length > 0 || !AT_REST.has(status)) return true
  const filter = { types: ['UserMessage', 'AssistantMessage', 'ToolResult'], order: 'desc', limit: 100 } as const
  const { items } = await conversation.listEvents(filter, options)
  const own = items.filter((event) => !('parent_tool_use_id' in event))
  const answer = own.find((event) => event.type === 'AssistantMessage')
  const readThrough = answer?.read_through ?? answer?.seq ?? 0
  if (own.some((event) => event.type === 'UserMessage' && event.seq > readThrough)) return true
  return status === 'idle' && own[0]?.type === 'ToolResult'
}

/** True if the agent is at rest, and only subagents in the background wait for decisions: no run is needed for them. */
export async function onlySubagentsAsk(
  conversation: ConversationHandle,
  { status, waiting }: Pick<Stopped, 'status' | 'waiting'>,
  options: CallOptions = {},
): Promise<boolean> {
  const areAsking = waiting.some((event) => 'parent_tool_use_id' in event && event.parent_tool_use_id !== undefined)
  return AT_REST.has(status) && areAsking && !(await hasWork(conversation, { status, waiting: [] }, options))
}

/** A run that another client has started in the meantime is as good. */
const STARTED: ReadonlySet<string> = new Set([
  'already_running',
  'already_continued',
  'waiting_for_confirmation',
  'waiting_for_input',
])

/** Starts a run unless one is active, waits, or has begun after the event `after`. Returns its id; undefined if it is not known. */
export async function continueStopped(
  conversation: ConversationHandle,
  { status, after }: Pick<Stopped, 'status' | 'after'>,
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
