/** What MCP servers ask the user while a call of their tools runs. */
import type { AnswerOf, OpenRequestOf } from '../../contract/request.ts'
import type { EventLog } from '../../events/event-log.ts'
import type { AnswerHeldIntent } from '../../state/held-intents.ts'
import type { LiveState } from '../live-state.ts'
import { matched, redactAnswers, sameAnswers } from './match-answers.ts'
import { findClosed } from './closed-requests.ts'
import type { EarlierAnswer, RequestHandler } from './request-handler.ts'

/** What requests that are held open by a call need from the conversation's actor. */
export type HeldActor = {
  /** Queues the work and runs it in turn. */
  inTurn<T>(work: () => Promise<T>): Promise<T>
  /** Decides and stores the events; call it only in turn. */
  apply(intent: AnswerHeldIntent): Promise<unknown>
}

export type ElicitationsDeps = {
  readonly log: EventLog
  readonly state: LiveState
  readonly redact: (text: string) => string
  readonly actor: HeldActor
}

type Answer = AnswerOf<'elicitation'>

export class Elicitations implements RequestHandler<'elicitation'> {
  readonly #deps: ElicitationsDeps

  constructor(deps: ElicitationsDeps) {
    this.#deps = deps
  }

  open(): OpenRequestOf<'elicitation'>[] {
    return this.#deps.state.current.requests.filter((request) => request.kind === 'elicitation')
  }

  redact({ kind, answers }: Answer): Answer {
    return { kind, answers: redactAnswers(answers, this.#deps.redact) }
  }

  async answer(requestId: string, { kind, answers: given }: Answer, keyName: string | undefined): Promise<boolean> {
    const { actor } = this.#deps
    return await actor.inTurn(async () => {
      const open = this.open().find(({ request_id }) => request_id === requestId)
      if (!open) return false
      const answers = matched(open.payload.questions, given)
      await actor.apply({ kind: 'answer_held', requestId, answer: { kind, answer: { answers } }, keyName })
      return true
    })
  }

  async compare(requestId: string, { answers }: Answer): Promise<EarlierAnswer> {
    const closed = await findClosed(this.#deps.log, 'elicitation', requestId)
    if (!closed) return 'unknown'
    const [earlier] = closed.answers
    return earlier ? sameAnswers(closed.opened.payload.questions, answers, earlier.answer.answers) : 'none'
  }
}
