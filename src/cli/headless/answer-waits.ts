/** Answers what a run waits for when nobody is there: approvals are denied, questions get a text that says so. */
import { AgentServerError } from '../../client/agent-server-error.ts'
import type { ConversationHandle } from '../../client/conversation/conversation-handle.ts'
import type { Event, EventOf } from '../../contract/events/event.ts'

export type Denied = {
  /** Name of the tool, or `network`. */
  readonly tool: string
  /** The call, or host and port. */
  readonly input: unknown
  readonly reason: string
  /** The rules that would have allowed it. */
  readonly rules: readonly string[]
}

const DENIAL =
  'Nobody can approve this call: the run is not interactive. Continue without it, or say what you would need.'
const NO_ANSWER =
  'Nobody can answer: the run is not interactive. Decide yourself and say what you assumed, or end with your question.'

const NOT_PENDING: ReadonlySet<string> = new Set([
  'already_decided',
  'already_answered',
  'permission_not_found',
  'question_not_found',
  'question_closed',
  'network_request_not_found',
])

export type Wait = EventOf<'PermissionRequest' | 'NetworkRequest' | 'UserQuestion'>

export const isWait = (event: Event): event is Wait =>
  event.type === 'PermissionRequest' || event.type === 'NetworkRequest' || event.type === 'UserQuestion'

/** Returns what it has denied: nothing if another client has answered. */
export async function answerWait(conversation: ConversationHandle, event: Wait): Promise<readonly Denied[]> {
  switch (event.type) {
    case 'PermissionRequest':
      return (await wasFirst(conversation.permissions.deny(event, { message: DENIAL })))
        ? event.tool_uses.map(({ name, input, reason, rules = [] }) => ({ tool: name, input, reason, rules }))
        : []
    case 'NetworkRequest':
      return (await wasFirst(conversation.networkRequests.decide(event.request_id, { behavior: 'deny' })))
        ? [{ tool: 'network', input: `${event.host}:${event.port}`, reason: 'The host is not listed.', rules: [] }]
        : []
    case 'UserQuestion': {
      const answers = Object.fromEntries(event.questions.map((_, at) => [String(at), NO_ANSWER]))
      await wasFirst(conversation.questions.answer(event.question_id, { answers }))
      return []
    }
  }
}

/** False if another client has answered, or the run has ended. */
async function wasFirst(request: Promise<unknown>): Promise<boolean> {
  try {
    await request
    return true
  } catch (error) {
    if (error instanceof AgentServerError && NOT_PENDING.has(error.code)) return false
    throw error
  }
}
