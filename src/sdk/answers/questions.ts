/** Lets the program answer the questions that the agent asks. A form of an MCP server that nobody answers is declined. */
import type { Status } from '../../contract/events/status.ts'
import type { KindOfForm } from '../../contract/requests/request-forms.ts'
import { hasForm, questionForm } from '../../contract/requests/request-forms.ts'
import { orAborted } from '../../lib/bounded-wait.ts'
import type { AnswerQuestions } from '../options/query-options.ts'
import { repeatLost } from '../errors/repeat-lost.ts'
import type { Answerer, OpenedRequest, Work } from './request-responder.ts'
import type { ResponderDeps } from './responder.ts'

type QuestionOpened = Extract<OpenedRequest, { kind: KindOfForm<'questions'> }>

export class QuestionAnswerer implements Answerer {
  readonly #deps: ResponderDeps
  readonly #answer: AnswerQuestions | undefined
  #hasDeclined = false

  constructor(deps: ResponderDeps, answer: AnswerQuestions | undefined) {
    this.#deps = deps
    this.#answer = answer
  }

  workOn(event: OpenedRequest): Work[] {
    if (!hasForm(event, 'questions') || !(this.#answer || questionForm(event.kind).unanswered)) return []
    const [toolUseId = ''] = event.tool_use_ids
    return [{ toolUseId, run: (signal) => this.#answerEvent(event, toolUseId, signal) }]
  }

  mayAnswer(status: Status): boolean {
    return status === 'waiting_for_input' && this.#answer !== undefined && !this.#hasDeclined
  }

  /** An error of the program ends the query with it. */
  async #answerEvent(event: QuestionOpened, toolUseId: string, signal: AbortSignal): Promise<void> {
    const { kind, request_id, payload, conversation_id: sessionId } = event
    const { requests } = this.#deps.conversation
    const asking = async () => this.#answer?.(payload.questions, { signal, sessionId, toolUseId })
    // The call of a form keeps the run active: it cannot wait for another client as a question does.
    const answers = (await orAborted(asking(), signal)) ?? questionForm(kind).unanswered?.answers
    if (answers !== undefined)
      return void (await repeatLost(
        () => requests.answer(request_id, { kind, answers: { ...answers } }, { signal }),
        signal,
      ))
    this.#hasDeclined = true
    this.#deps.onDeclined()
  }
}
