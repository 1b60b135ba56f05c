/** Answers what a run waits for when nobody is there: approvals are denied, forms declined, and questions get a text that says so. */
import { AgentServerError } from '../../client/request/agent-server-error.ts'
import type { ConversationHandle } from '../../client/conversation/conversation-handle.ts'
import type { Event, EventOf } from '../../contract/events/event.ts'
import type { KindOfForm } from '../../contract/requests/request-forms.ts'
import { decide, decisionOf, hasForm, isForPeople, questionForm } from '../../contract/requests/request-forms.ts'

export type DeniedCall = {
  /** Name of the tool, or the kind of the request. */
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

const NOT_PENDING: ReadonlySet<string> = new Set(['already_answered', 'request_not_found', 'request_closed'])

/** What nobody else answers. */
export type Wait = Extract<EventOf<'RequestOpened'>, { kind: KindOfForm<'calls' | 'questions' | 'decision'> }>

export const isWait = (event: Event): event is Wait => event.type === 'RequestOpened' && isForPeople(event)

/** Returns what it has denied: nothing if another client has answered. */
export async function answerWait({ requests }: ConversationHandle, event: Wait): Promise<readonly DeniedCall[]> {
  const { request_id: id } = event
  if (event.kind === 'permission') return await denyLeft(requests, id)
  if (hasForm(event, 'decision')) {
    const { subject, refusal } = decisionOf(event)
    const isDenied = await wasFirst(requests.answer(id, decide(event.kind, 'deny')))
    return isDenied ? [{ tool: event.kind, input: subject, reason: refusal, rules: [] }] : []
  }
  const { kind, payload } = event
  const noAnswers = Object.fromEntries(payload.questions.map((_, at) => [String(at), NO_ANSWER]))
  await wasFirst(requests.answer(id, { kind, ...(questionForm(kind).unanswered ?? { answers: noAnswers }) }))
  return []
}

/** Hooks, or another client, may have decided some of the calls. */
async function denyLeft(requests: ConversationHandle['requests'], id: string): Promise<readonly DeniedCall[]> {
  const open = await requests.get(id).catch((error: unknown) => {
    if (isNotPending(error)) return undefined
    throw error
  })
  if (open?.kind !== 'permission' || !(await wasFirst(requests.deny(open, { message: DENIAL })))) return []
  return open.payload.tool_uses
    .filter(({ decision }) => decision === undefined)
    .map(({ name, input, reason, rules = [] }) => ({ tool: name, input, reason, rules }))
}

const isNotPending = (error: unknown) => error instanceof AgentServerError && NOT_PENDING.has(error.code)

/** False if another client has answered, or the run has ended. */
async function wasFirst(request: Promise<unknown>): Promise<boolean> {
  try {
    await request
    return true
  } catch (error) {
    if (isNotPending(error)) return false
    throw error
  }
}
