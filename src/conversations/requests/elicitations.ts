/** What MCP servers ask the user while a call of their tools runs. */
import type { AskedQuestion } from '../../contract/values/question.ts'
import type { AnswerOf } from '../../contract/request.ts'
import type { EventLog } from '../../events/event-log.ts'
import { mapStrings } from '../../lib/json/map-strings.ts'
import type { ToolContext } from '../../tools/tool.ts'
import { findClosed } from './closed-requests.ts'
import type { HeldRequests } from './held-requests.ts'
import { matchOrThrow, redactAnswers, sameAnswers } from './match-answers.ts'
import type { EarlierAnswer, RequestHandler } from './request-handler.ts'
import type { IntentInbox } from '../live/inbox.ts'

export type ElicitationsDeps = {
  readonly log: EventLog
  readonly elicitations: HeldRequests
  readonly redact: (text: string) => string
  readonly actor: IntentInbox
}

type Answer = AnswerOf<'elicitation'>

export class Elicitations implements RequestHandler<'elicitation'> {
  readonly #deps: ElicitationsDeps

  constructor(deps: ElicitationsDeps) {
    this.#deps = deps
  }

  open() {
    return this.#deps.elicitations.views()
  }

  redact({ kind, answers }: Answer): Answer {
    return { kind, answers: redactAnswers(answers, this.#deps.redact) }
  }

  check(requestId: string, { answers }: Answer): void {
    const request = this.#deps.elicitations.get(requestId)
    if (request) matchOrThrow(request.view.payload.questions, answers)
  }

  async answer(
    requestId: string,
    { kind, answers: givenAnswers }: Answer,
    keyName: string | undefined,
  ): Promise<boolean> {
    const { elicitations, actor } = this.#deps
    return await actor.enqueue(async () => {
      const request = elicitations.get(requestId)
      if (!request) return false
      const answer = { answers: matchOrThrow(request.view.payload.questions, givenAnswers) }
      const intent = { kind: 'answer_held', requestId, answer: { kind, answer }, keyName } as const
      await request.answer(answer, () => actor.apply(intent))
      return true
    })
  }

  async compare(requestId: string, { answers }: Answer): Promise<EarlierAnswer> {
    const closedRequest = await findClosed(this.#deps.log, 'elicitation', requestId)
    if (!closedRequest) return 'unknown'
    const [earlier] = closedRequest.answers
    return earlier
      ? sameAnswers(
          closedRequest.opened.payload.questions,
          answers,
          redactAnswers(earlier.answer.answers, this.#deps.redact),
        )
      : 'none'
  }
}

/** How tools ask. The returned function rejects if the request could not be stored. */
export const createElicit =
  (elicitations: HeldRequests, redact: (text: string) => string): ToolContext['elicit'] =>
  async ({ toolUseId, server, questions, signal }) => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- texts only: the shape stays
    const shownQuestions = mapStrings(questions, redact) as AskedQuestion[]
    const end = await elicitations.hold({ toolUseId, payload: { server, questions: shownQuestions }, signal })
    return end.by === 'answer' ? end.answer.answers : undefined
  }
