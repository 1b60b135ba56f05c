/**
 * Asks the editor what the agent waits for: approvals, questions and connections. Only a chosen option decides: an editor
 * that is gone, cannot answer, or answers something else leaves the request open, for any other client.
 */
import type { PermissionOption } from '@agentclientprotocol/sdk'
import { AgentServerError } from '../../client/request/agent-server-error.ts'
import type { ConversationHandle } from '../../client/conversation/conversation-handle.ts'
import type { Event } from '../../contract/events/event.ts'
import { requestOf } from '../../contract/events/opened-request.ts'
import type { AnswerRequest, OpenRequest, OpenRequestOf } from '../../contract/request.ts'
import type { KindOfForm } from '../../contract/requests/request-forms.ts'
import { decide, decisionOf, hasForm, questionForm } from '../../contract/requests/request-forms.ts'
import type { AskedToolUse } from '../../contract/values/permission.ts'
import { showHidden } from '../../contract/values/show-hidden.ts'
import { formOfCall, wholeCall } from './call-form.ts'
import type { AskedDecision, EditorEdge } from './editor-edge.ts'
import { answersIn, formOf, textOfQuestions } from './question-form.ts'

type Options = {
  readonly edge: EditorEdge
  readonly conversation: ConversationHandle
  readonly workdir: string
  /** Reports what nobody waits for. */
  readonly warn: (text: string) => void
}

type Permission = OpenRequestOf<'permission'>
type Choice = Pick<PermissionOption, 'kind' | 'name'>

export class EditorRequests {
  readonly #options: Options
  /** What the editor is being asked, by request, and by call of it. */
  readonly #open = new Map<string, { readonly calls: readonly string[]; readonly controller: AbortController }>()
  readonly #askedIds = new Set<string>()

  constructor(options: Options) {
    this.#options = options
  }

  async take(event: Event): Promise<void> {
    if (event.type === 'RequestOpened') await this.ask(requestOf(event))
    if (event.type === 'RequestClosed') this.#withdraw((key) => key.startsWith(event.request_id))
    if (event.type === 'RequestAnswered')
      this.#withdraw((key, calls) => key.startsWith(event.request_id) && isDecided(event, calls))
    if (event.type === 'ToolResult') this.#withdraw((_, calls) => calls.includes(event.tool_use_id))
  }

  /** Asks each request once. Resolves when it was sent, and does not wait for the answer. */
  async ask(request: OpenRequest): Promise<void> {
    if (this.#askedIds.has(request.request_id)) return
    this.#askedIds.add(request.request_id)
    if (request.kind === 'permission') {
      for (const call of request.payload.tool_uses)
        if (!('decision' in call && call.decision)) this.#begin(this.#askPermission(request, call))
    }
    if (hasForm(request, 'decision')) this.#begin(this.#askDecision(request))
    if (!hasForm(request, 'questions')) return
    const { edge } = this.#options
    if (edge.showsForms) return this.#begin(this.#askQuestions(request))
    await edge.tell(textOfQuestions(request.payload.questions))
    const { unanswered } = questionForm(request.kind)
    if (!unanswered) return
    // Its call keeps the run active, so that the next prompt could not be the answer, as it is to a question.
    await edge.tell('This form is declined, because the editor shows no forms.')
    this.#begin(this.#answer(request.request_id, { kind: request.kind, ...unanswered }))
  }

  /** What cannot be shown waits for another client. */
  #begin(answering: Promise<void>): void {
    const report = (error: unknown) => this.#options.edge.tell(`A request cannot be shown here: ${String(error)}`)
    answering.catch(report).catch(() => {}) // the editor is gone
  }

  /** The turn was cancelled, or the session is closed. */
  withdrawAll(): void {
    this.#withdraw(() => true)
  }

  #withdraw(isMeant: (key: string, calls: readonly string[]) => boolean): void {
    for (const [key, { calls, controller }] of this.#open) {
      if (!isMeant(key, calls)) continue
      this.#open.delete(key)
      controller.abort()
    }
  }

  async #askPermission({ request_id, agent_name }: Permission, call: AskedToolUse): Promise<void> {
    const { tool_use_id, input_hash, name, input, reason, rules = [] } = call
    const { workdir } = this.#options
    const { title, kind, locations, rawInput } = formOfCall(name, input, workdir, agent_name)
    const content = wholeCall(name, input, workdir, reason)
    const toolCall = { toolCallId: tool_use_id, title, kind, locations, rawInput, status: 'pending', content } as const
    const always: Choice[] =
      rules.length > 0 ? [{ kind: 'allow_always', name: `Always allow ${showHidden(rules.join(', '))}` }] : []
    await this.#decide(`${request_id} ${tool_use_id}`, [tool_use_id], { toolCall, always }, async (kind) => {
      const behavior = kind === 'reject_once' ? 'deny' : 'allow'
      const decision = {
        tool_use_id,
        input_hash,
        behavior,
        ...(kind === 'allow_always' && { remember: true }),
      } as const
      await this.#answer(request_id, { kind: 'permission', decisions: [decision] })
    })
  }

  async #askDecision(request: OpenRequestOf<KindOfForm<'decision'>>): Promise<void> {
    const { kind: requestKind, request_id, tool_use_ids } = request
    const { subject, action, editorKind, remembered } = decisionOf(request)
    const title = showHidden(action)
    const toolCall = { toolCallId: request_id, title, kind: editorKind, status: 'pending' } as const
    const always: Choice[] =
      remembered === undefined ? [] : [{ kind: 'allow_always', name: `Always allow ${showHidden(subject)}` }]
    await this.#decide(request_id, tool_use_ids, { toolCall, always }, async (kind) => {
      const behavior = kind === 'reject_once' ? 'deny' : 'allow'
      await this.#answer(request_id, decide(requestKind, behavior, kind === 'allow_always'))
    })
    const update = { sessionUpdate: 'tool_call_update', toolCallId: request_id, status: 'completed' } as const
    await this.#options.edge.send([update]).catch(() => {}) // the editor is gone
  }

  async #decide(
    key: string,
    calls: readonly string[],
    { toolCall, always }: { readonly toolCall: AskedDecision['toolCall']; readonly always: readonly Choice[] },
    onChoice: (kind: PermissionOption['kind']) => Promise<void>,
  ): Promise<void> {
    const choices: Choice[] = [
      { kind: 'allow_once', name: 'Allow' },
      ...always,
      { kind: 'reject_once', name: 'Reject' },
    ]
    const options = choices.map((choice) => ({ ...choice, optionId: choice.kind }))
    await this.#request(key, calls, async (cancellationSignal) => {
      const chosenId = await this.#options.edge.choose({ toolCall, options }, cancellationSignal)
      const chosenOption = choices.find(({ kind }) => kind === chosenId)
      if (chosenOption && !cancellationSignal.aborted) await onChoice(chosenOption.kind)
    })
  }

  async #askQuestions({ kind, request_id, payload, tool_use_ids }: OpenRequestOf<KindOfForm<'questions'>>) {
    await this.#request(request_id, tool_use_ids, async (cancellationSignal) => {
      const form = {
        toolCallId: tool_use_ids[0],
        message: textOfQuestions(payload.questions),
        requestedSchema: formOf(payload.questions),
      }
      // The call of a form keeps the run active until it has an answer; a question rests.
      const { unanswered } = questionForm(kind)
      const content = await this.#options.edge.fillIn(form, cancellationSignal).catch((error: unknown) => {
        if (!unanswered || cancellationSignal.aborted) throw error
      })
      const answers = (content && answersIn(payload.questions, content)) ?? unanswered?.answers
      if (answers && !cancellationSignal.aborted) await this.#answer(request_id, { kind, answers: { ...answers } })
    })
  }

  /** Reports what fails, because nobody waits for it. */
  async #request(key: string, calls: readonly string[], ask: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const controller = new AbortController()
    this.#open.set(key, { calls, controller })
    try {
      await ask(controller.signal)
    } catch (error) {
      if (controller.signal.aborted) return
      this.#options.warn(`the editor has not answered: ${String(error)}`)
    } finally {
      this.#open.delete(key)
    }
  }

  async #answer(requestId: string, answer: AnswerRequest): Promise<void> {
    try {
      await this.#options.conversation.requests.answer(requestId, answer)
    } catch (error) {
      if (error instanceof AgentServerError && OVER.has(error.code)) return
      await this.#options.edge.tell(
        `The answer was not accepted: ${error instanceof Error ? error.message : String(error)}`,
      )
    }
  }
}

/** Somebody else was first. */
const OVER: ReadonlySet<string> = new Set([
  'already_answered',
  'request_closed',
  'request_not_found',
  'nothing_pending',
])

function isDecided(event: Extract<Event, { type: 'RequestAnswered' }>, calls: readonly string[]): boolean {
  if (event.kind !== 'permission') return true
  return event.answer.decisions.some(({ tool_use_id }) => calls.includes(tool_use_id))
}
