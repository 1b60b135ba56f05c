/** Answers what a run waits for when nobody is there: approvals are denied, questions get a text that says so. */
import { AgentServerError } from '../../client/agent-server-error.ts'
import type { ConversationHandle } from '../../client/conversation/conversation-handle.ts'
import type { Event } from '../../contract/events/event.ts'

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

/** Returns what it has denied. Does nothing for events that need no answer. */
export async function answerWait(conversation: ConversationHandle, event: Event): Promise<readonly Denied[]> {
  switch (event.type) {
    case 'PermissionRequest':
      await unlessAnswered(conversation.permissions.deny(event, { message: DENIAL }))
      return event.tool_uses.map(({ name, input, reason, rules = [] }) => ({ tool: name, input, reason, rules }))
    case 'NetworkRequest':
      await unlessAnswered(conversation.networkRequests.decide(event.request_id, { behavior: 'deny' }))
      return [{ tool: 'network', input: `${event.host}:${event.port}`, reason: 'The host is not listed.', rules: [] }]
    case 'UserQuestion': {
      const answers = Object.fromEntries(event.questions.map((_, at) => [String(at), NO_ANSWER]))
      await unlessAnswered(conversation.questions.answer(event.question_id, { answers }))
      return []
    }
    default:
      return []
  }
}

/** Another client may have answered, or the run has ended. */
async function unlessAnswered(request: Promise<unknown>): Promise<void> {
  await request.catch((error: unknown) => {
    if (!(error instanceof AgentServerError && NOT_PENDING.has(error.code))) throw error
  })
}
