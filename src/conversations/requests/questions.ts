/** Questions that the agent asks the user. */
import type { Answers, AskedQuestion } from '../../contract/question.ts'
import { Problem } from '../../contract/problem.ts'
import type { AnswerOf } from '../../contract/request.ts'
import type { EventLog } from '../../events/event-log.ts'
import { canonicalJson } from '../../lib/json/canonical-json.ts'
import { questionsOf } from '../../state/open-requests.ts'
import type { AnswerIntent } from '../../state/question-intents.ts'
import type { LiveState } from '../live-state.ts'
import { findClosed } from './closed-requests.ts'
import type { EarlierAnswer, RequestHandler } from './request-handler.ts'
import { matchAnswers } from './match-answers.ts'

/** What questions need from the conversation's actor. */
export type QuestionActor = {
  /** Queues the work and runs it in turn. */
  inTurn<T>(work: () => Promise<T>): Promise<T>
  /** Decides and stores the events; call it only in turn. */
  apply(intent: AnswerIntent): Promise<unknown>
  /** The open calls whose tool writes the result. */
  begunCalls(): readonly string[]
}

export type QuestionsDeps = {
  readonly log: EventLog
  readonly state: LiveState
  readonly redact: (text: string) => string
  readonly actor: QuestionActor
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

  /** Secrets are replaced in what the user wrote; the questions are named as they are stored. */
  redact({ kind, answers }: Answer): Answer {
    const { redact } = this.#deps
    const redacted = Object.entries(answers).map(([question, given]): [string, string | string[]] => [
      question,
      typeof given === 'string' ? redact(given) : given.map(redact),
    ])
    return { kind, answers: Object.fromEntries(redacted) }
  }

  async answer(questionId: string, { answers: given }: Answer, keyName: string | undefined): Promise<boolean> {
    const { actor } = this.#deps
    return await actor.inTurn(async () => {
      const open = this.open().find(({ request_id }) => request_id === questionId)
      if (!open) return false
      const answers = match(open.payload.questions, given)
      await actor.apply({ kind: 'answer', questionId, answers, begun: actor.begunCalls(), keyName })
      return true
    })
  }

  async compare(questionId: string, { answers: given }: Answer): Promise<EarlierAnswer> {
    const closed = await findClosed(this.#deps.log, 'question', questionId)
    if (!closed) return 'unknown'
    const [answer] = closed.answers
    if (!answer) return 'none'
    const answers = matchAnswers(closed.opened.payload.questions, given)
    const isSame = !(answers instanceof Problem) && canonicalJson(answers) === canonicalJson(answer.answer.answers)
    return isSame ? 'same' : 'other'
  }
}

function match(questions: readonly AskedQuestion[], given: Answer['answers']): Answers {
  const answers = matchAnswers(questions, given)
  if (answers instanceof Problem) throw answers
  return answers
}
