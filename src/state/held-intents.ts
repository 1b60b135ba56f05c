/** Decides the events of answers to requests of a call that has begun, and of their deadlines. Pure. */
import type { EventDraft, EventOf } from '../contract/events/event.ts'
import type { HeldKind, StoredKind } from '../contract/requests/request-kinds.ts'
import type { Problem } from '../contract/problem.ts'
import { inRun, inSubagent } from './drafts.ts'
import { clientCallsOf } from './open-requests.ts'
import { byKey, closing } from './request-drafts.ts'
import { requestNotFound } from './request-problems.ts'
import type { State } from './state.ts'
import { callerOf } from './subagents.ts'
import { afterAnswerTo } from './waits.ts'

/** What the log has of an answer to a request of this kind. */
export type StoredAnswerOf<K extends StoredKind> = Extract<EventOf<'RequestAnswered'>, { kind: K }>['answer']

type AnswerIn = {
  [K in HeldKind | 'client_tool']: { readonly kind: K; readonly answer: StoredAnswerOf<K> }
}[HeldKind | 'client_tool']

/** The answer fits the request, and is redacted. */
export type AnswerHeldIntent = {
  kind: 'answer_held'
  requestId: string
  answer: AnswerIn
  /** The name of the API key of the client. */
  keyName?: string | undefined
}

/** A deadline may have passed. `now` is milliseconds since 1970. The calls of the requests in `ending` close them. */
export type ExpireIntent = { kind: 'expire'; now: number; ending?: ReadonlySet<string> }

/** The tool that waits, or that the run calls again, writes the result of its call. */
export function decideAnswerHeld(
  state: State,
  { requestId, answer, keyName }: AnswerHeldIntent,
): EventDraft[] | Problem {
  const request = state.requests.find(({ request_id, kind }) => request_id === requestId && kind === answer.kind)
  if (!request) return requestNotFound()
  const [toolUseId = ''] = request.tool_use_ids
  const caller = callerOf(state, toolUseId)
  const answerEvent: EventDraft = {
    type: 'RequestAnswered',
    source: 'user',
    ...inRun(caller?.agent ?? state),
    request_id: requestId,
    tool_use_ids: request.tool_use_ids,
    ...answer,
    ...byKey(keyName),
  }
  return [...(caller ? inSubagent([answerEvent], caller) : [answerEvent]), ...afterAnswerTo(state, caller, 'answered')]
}

/** Closes the calls of clients whose deadline has passed; the model reads that none has sent a result. */
export function decideExpire(state: State, { now, ending }: ExpireIntent): EventDraft[] {
  const late = clientCallsOf(state)
    .filter(({ request_id }) => !ending?.has(request_id))
    .filter(({ deadline }) => deadline !== undefined && Date.parse(deadline) <= now)
  const callers = late.map(({ tool_use_ids: [toolUseId = ''] }) => callerOf(state, toolUseId))
  const closings = late.flatMap((request, at) => {
    const caller = callers[at]
    const draft = { ...closing(request, 'timeout'), ...inRun(caller?.agent ?? state) }
    return caller ? inSubagent([draft], caller) : [draft]
  })
  const [continuation = []] = callers
    .map((caller) => afterAnswerTo(state, caller, 'timeout'))
    .filter(({ length }) => length)
  return [...closings, ...continuation]
}
