/** Lets the program answer the questions that the agent asks. */
import type { Status } from '../../contract/events/status.ts'
import { orAborted } from '../../lib/bounded-wait.ts'
import type { AnswerQuestions } from '../options/query-options.ts'
import { repeatLost } from '../errors/repeat-lost.ts'
import type { Answerer, OpenedRequest, Work } from './request-responder.ts'
import type { ResponderDeps } from './responder.ts'

type QuestionOpened = Extract<OpenedRequest, { kind: 'question' | 'elicitation' }>

export class QuestionAnswerer implements Answerer {
  readonly #deps: ResponderDeps
  readonly #answer: AnswerQuestions
  #hasDeclined = false

  constructor(deps: ResponderDeps, answer: AnswerQuestions) {
    this.#deps = deps
    this.#answer = answer
  }

  workOn(event: OpenedRequest): Work[] {
    if (event.kind !== 'question' && event.kind !== 'elicitation') return []
    const [toolUseId = ''] = event.tool_use_ids
    return [{ toolUseId, run: (signal) => this.#answerEvent(event, toolUseId, signal) }]
  }

  mayAnswer(status: Status): boolean {
    return status === 'waiting_for_input' && !this.#hasDeclined
  }

  /** An error of the program ends the query with it. */
  async #answerEvent(event: QuestionOpened, toolUseId: string, signal: AbortSignal): Promise<void> {
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
