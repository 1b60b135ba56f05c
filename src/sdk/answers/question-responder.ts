/** Has the program answer the questions that the agent asks. */
import type { Event, EventOf } from '../../contract/events/event.ts'
import type { Status } from '../../contract/events/status.ts'
import { orAborted } from '../../lib/bounded-wait.ts'
import type { AnswerQuestions } from '../options/query-options.ts'
import { repeatLost } from '../repeat-lost.ts'
import type { Responder, ResponderDeps } from './responder.ts'
import { OpenWork } from './responder.ts'

type QuestionOpened = Extract<EventOf<'RequestOpened'>, { kind: 'question' | 'elicitation' }>

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
    if (event.type !== 'RequestOpened' || (event.kind !== 'question' && event.kind !== 'elicitation')) return
    const [toolUseId = event.request_id] = event.tool_use_ids
    this.#work.start(toolUseId, (signal) => this.#ask(event, toolUseId, signal))
  }

  mayAnswer(status: Status): boolean {
    return status === 'waiting_for_input' && !this.#hasDeclined
  }

  close(): void {
    this.#work.endAll()
  }

  /** An error of the program ends the query with it. */
  async #ask(event: QuestionOpened, toolUseId: string, signal: AbortSignal): Promise<void> {
    const { kind, request_id, payload, conversation_id: sessionId } = event
    const { requests } = this.#deps.conversation
    const asking = async () => this.#answer(payload.questions, { signal, sessionId, toolUseId })
    const answers = await orAborted(asking(), signal)
    if (answers !== undefined)
      return void (await repeatLost(
        () => requests.answer(request_id, { kind, answers: { ...answers } }, { signal }),
        signal,
      ))
    this.#hasDeclined = true
    this.#deps.onDeclined()
  }
}
