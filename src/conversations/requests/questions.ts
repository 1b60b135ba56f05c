/** Questions that the agent asks the user. */
import type { AnswerOf } from '../../contract/request.ts'
import type { EventLog } from '../../events/event-log.ts'
import { questionsOf } from '../../state/open-requests.ts'
import type { LiveState } from '../live/live-state.ts'
import { findClosed } from './closed-requests.ts'
import type { EarlierAnswer, RequestHandler } from './request-handler.ts'
import { matchOrThrow, redactAnswers, sameAnswers } from './match-answers.ts'
import type { IntentInbox } from '../live/inbox.ts'

export type QuestionsDeps = {
  readonly log: EventLog
  readonly state: LiveState
  readonly redact: (text: string) => string
  readonly actor: IntentInbox
}

type Answer = AnswerOf<'question'>

export class Questions implements RequestHandler<'question'> {
  readonly #deps: QuestionsDeps

  constructor(deps: QuestionsDeps) {
    this.#deps = deps
  }

  open() {
    return questionsOf(this.#deps.state.current)
  }

  redact({ kind, answers }: Answer): Answer {
    return { kind, answers: redactAnswers(answers, this.#deps.redact) }
  }

  check(questionId: string, { answers }: Answer): void {
    const open = this.open().find(({ request_id }) => request_id === questionId)
    if (open) matchOrThrow(open.payload.questions, answers)
  }

  async answer(questionId: string, { answers: givenAnswers }: Answer, keyName: string | undefined): Promise<boolean> {
    const { actor } = this.#deps
    return await actor.enqueue(async () => {
      const open = this.open().find(({ request_id }) => request_id === questionId)
      if (!open) return false
      const answers = matchOrThrow(open.payload.questions, givenAnswers)
      await actor.apply({ kind: 'answer', questionId, answers, keyName })
      return true
    })
  }

  async compare(questionId: string, { answers: givenAnswers }: Answer): Promise<EarlierAnswer> {
    const closedRequest = await findClosed(this.#deps.log, 'question', questionId)
    if (!closedRequest) return 'unknown'
    const [earlier] = closedRequest.answers
    return earlier
      ? sameAnswers(
          closedRequest.opened.payload.questions,
          givenAnswers,
          redactAnswers(earlier.answer.answers, this.#deps.redact),
        )
      : 'none'
  }
}
