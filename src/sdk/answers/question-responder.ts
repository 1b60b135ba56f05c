/** Has the program answer the questions that the agent asks. */
import type { Event, EventOf } from '../../contract/events/event.ts'
import type { Status } from '../../contract/events/status.ts'
import { orAborted } from '../../lib/bounded-wait.ts'
import type { AnswerQuestions } from '../options/query-options.ts'
import { repeatLost } from '../repeat-lost.ts'
import type { Responder, ResponderDeps } from './responder.ts'
import { OpenWork } from './responder.ts'

export class QuestionResponder implements Responder {
  readonly #deps: ResponderDeps
  readonly #answer: AnswerQuestions
  readonly #work: OpenWork
  #hasDeclined = false

  constructor(deps: ResponderDeps, answer: AnswerQuestions) {
    this.#deps = deps
    this.#answer = answer
    this.#work = new OpenWork(deps.fail)
  }

  take(event: Event): void {
    if (event.type === 'ToolResult') return this.#work.end(event.tool_use_id)
    if (event.type === 'UserQuestion') this.#work.start(event.tool_use_id, (signal) => this.#ask(event, signal))
  }

  mayAnswer(status: Status): boolean {
    return status === 'waiting_for_input' && !this.#hasDeclined
  }

  close(): void {
    this.#work.endAll()
  }

  /** An error of the program ends the query with it. */
  async #ask(event: EventOf<'UserQuestion'>, signal: AbortSignal): Promise<void> {
    const { questions, conversation_id: sessionId, tool_use_id: toolUseId } = event
    const asking = async () => this.#answer(questions, { signal, sessionId, toolUseId })
    const answers = await orAborted(asking(), signal)
    if (answers !== undefined)
      return void (await repeatLost(
        () => this.#deps.conversation.questions.answer(event.question_id, { answers: { ...answers } }, { signal }),
        signal,
      ))
    this.#hasDeclined = true
    this.#deps.onDeclined()
  }
}
