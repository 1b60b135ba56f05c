/** Decides the events of answers to requests whose call runs and waits for them. Pure. */
import type { EventDraft, EventOf } from '../contract/events/event.ts'
import type { Problem } from '../contract/problem.ts'
import { inRun, inSubagent } from './drafts.ts'
import { byKey } from './request-drafts.ts'
import { requestNotFound } from './request-problems.ts'
import type { State } from './state.ts'
import { callerOf } from './subagents.ts'

type HeldAnswer = Extract<EventOf<'RequestAnswered'>, { kind: 'client_tool' | 'elicitation' }>

/** The answer fits the request, and is redacted. */
export type AnswerHeldIntent = {
  kind: 'answer_held'
  requestId: string
  answer:
    | Pick<Extract<HeldAnswer, { kind: 'client_tool' }>, 'kind' | 'answer'>
    | Pick<Extract<HeldAnswer, { kind: 'elicitation' }>, 'kind' | 'answer'>
  /** The name of the API key of the client. */
  keyName?: string | undefined
}

/** The tool that waits writes the result of its call. */
export function decideAnswerHeld(
  state: State,
  { requestId, answer, keyName }: AnswerHeldIntent,
): EventDraft[] | Problem {
  const request = state.requests.find(({ request_id, kind }) => request_id === requestId && kind === answer.kind)
  if (!request) return requestNotFound()
  const [toolUseId = ''] = request.tool_use_ids
  const caller = callerOf(state, toolUseId)
  const answered: EventDraft = {
    type: 'RequestAnswered',
    source: 'user',
    ...inRun(caller?.agent ?? state),
    request_id: requestId,
    tool_use_ids: request.tool_use_ids,
    ...answer,
    ...byKey(keyName),
  }
  return caller ? inSubagent([answered], caller) : [answered]
}
