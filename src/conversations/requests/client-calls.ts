/** Calls of client tools: a client executes them, and answers with the result. */
import { redactOutput } from '../../agent/redact-output.ts'
import type { AnswerOf } from '../../contract/request.ts'
import type { EventLog } from '../../events/event-log.ts'
import { canonicalJson } from '../../lib/json/canonical-json.ts'
import { clientCallsOf } from '../../state/open-requests.ts'
import type { EndingRequests } from '../live/ending-requests.ts'
import type { LiveState } from '../live/live-state.ts'
import { findClosed } from './closed-requests.ts'
import type { EarlierAnswer, RequestHandler } from './request-handler.ts'
import type { IntentInbox } from '../live/inbox.ts'

export type ClientCallsDeps = {
  readonly log: EventLog
  readonly state: LiveState
  readonly ending: EndingRequests
  readonly redact: (text: string) => string
  readonly actor: IntentInbox
}

type Answer = AnswerOf<'client_tool'>

export class ClientCalls implements RequestHandler<'client_tool'> {
  readonly #deps: ClientCallsDeps

  constructor(deps: ClientCallsDeps) {
    this.#deps = deps
  }

  open() {
    const now = Date.now()
    const { state, ending } = this.#deps
    return clientCallsOf(state.current)
      .filter(ending.canBeAnswered)
      .filter(({ deadline }) => deadline === undefined || Date.parse(deadline) > now)
  }

  redact(answer: Answer): Answer {
    const { kind, is_error } = answer
    return { kind, output: redactOutput(answer.output, this.#deps.redact) ?? null, is_error }
  }

  async answer(requestId: string, { kind, output, is_error }: Answer, keyName: string | undefined): Promise<boolean> {
    const { ending, actor } = this.#deps
    return await actor.enqueue(async () => {
      if (!this.open().some(({ request_id }) => request_id === requestId)) return false
      const intent = {
        kind: 'answer_held',
        requestId,
        answer: { kind, answer: { output, is_error } },
        keyName,
      } as const
      await ending.storing(() => actor.apply(intent))
      return true
    })
  }

  /** Closes the calls whose deadline has passed. */
  async expire(): Promise<void> {
    const { ending, actor } = this.#deps
    await actor.enqueue(() =>
      ending.storing(() => actor.apply({ kind: 'expire', now: Date.now(), ending: ending.ids })),
    )
  }

  async compare(requestId: string, { output, is_error }: Answer): Promise<EarlierAnswer> {
    const closedRequest = await findClosed(this.#deps.log, 'client_tool', requestId)
    if (!closedRequest) return 'unknown'
    const [storedAnswer] = closedRequest.answers
    if (!storedAnswer) return 'none'
    const earlier = this.redact({
      kind: 'client_tool',
      is_error: storedAnswer.answer.is_error,
      output: storedAnswer.answer.output ?? null,
    })
    return canonicalJson(earlier) === canonicalJson({ kind: 'client_tool', output, is_error }) ? 'same' : 'other'
  }
}
