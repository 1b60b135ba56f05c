/** The questions of one conversation: which wait for the user, and how the user answers them. */
import type {
  AnswerQuestion,
  Answers,
  AskedQuestion,
  PendingQuestions,
  QuestionAnswered,
} from '../../contract/events/questions.ts'
import { Problem } from '../../contract/problem.ts'
import type { EventLog } from '../../events/event-log.ts'
import type { LiveState } from '../live-state.ts'
import type { State } from '../../state/state.ts'
import { callerOf } from '../../state/subagents.ts'
import { requireSameAnswer } from './closed-questions.ts'
import { matchAnswers } from './match-answers.ts'
import type { OpenQuestion } from '../../state/open-questions.ts'
import { questionView } from '../../state/open-questions.ts'
import type { AnswerIntent } from '../../state/question-intents.ts'

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

export class Questions {
  readonly #deps: QuestionsDeps

  constructor(deps: QuestionsDeps) {
    this.#deps = deps
  }

  pending(): PendingQuestions {
    const { current } = this.#deps.state
    return { items: current.questions.map((each) => ({ ...questionView(each), ...agentOf(current, each) })) }
  }

  /**
   * Answers the questions of one call. The first answer counts; the same one again changes nothing, even long
   * afterwards. Throws a `Problem` for an answer that is not possible.
   */
  async answer(questionId: string, given: AnswerQuestion['answers']): Promise<QuestionAnswered> {
    const { log, state, actor } = this.#deps
    const isOpen = await actor.inTurn(async () => {
      const open = state.current.questions.find(({ id }) => id === questionId)
      if (!open) return false
      const answers = this.#match(open.questions, given)
      if (answers instanceof Problem) throw answers
      await actor.apply({ kind: 'answer', questionId, answers, begun: actor.begunCalls() })
      return true
    })
    // This runs out of turn: it only reads, possibly far back in the log, and closed questions do not change.
    if (!isOpen) await requireSameAnswer(log, questionId, given, (...what) => this.#match(...what))
    const { status, questions } = state.current
    return { status, pending: questions.length }
  }

  /** Secrets are replaced in what the user wrote; the questions are shown, and named, as they are stored. */
  #match(questions: readonly AskedQuestion[], given: AnswerQuestion['answers']): Answers | Problem {
    const answers = matchAnswers(questions, given)
    if (answers instanceof Problem) return answers
    return Object.fromEntries(
      Object.entries(answers).map(([question, texts]) => [question, texts.map((text) => this.#deps.redact(text))]),
    )
  }
}

/** Which subagent asks. */
function agentOf(state: State, { toolUseId }: OpenQuestion) {
  const subagent = callerOf(state, toolUseId)
  return subagent && { parent_tool_use_id: subagent.toolUseId, agent_name: subagent.name }
}
