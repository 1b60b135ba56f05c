/** Makes the panel for what waits for the user, and sends the answer. The first answer counts, from whichever client it comes. */
import { AgentServerError } from '../../../client/request/agent-server-error.ts'
import type { ToolDecision } from '../../../contract/values/permission.ts'
import type { OpenRequestOf } from '../../../contract/request.ts'
import type { KindOfForm } from '../../../contract/requests/request-forms.ts'
import { decide, decisionOf, hasForm } from '../../../contract/requests/request-forms.ts'
import type { Approval, ChatState } from '../state/chat-state.ts'
import { startsOf } from '../state/chat-state.ts'
import { cleanLine, cleanText, revealLine } from '../state/clean-text.ts'
import { approvalId, approvalsIn } from '../state/pending.ts'
import type { DecisionKey } from '../render/decision-panel.ts'
import { DecisionPanel } from '../render/decision-panel.ts'
import { ChoicePanel } from '../render/choice-panel.ts'
import { exactLines } from '../render/lines.ts'
import type { Panel } from '../render/panel.ts'
import type { Theme } from '../render/theme.ts'
import type { ChatSession } from '../chat-session.ts'
import { approvalLines } from './approval-text.ts'

type PanelContext = {
  readonly session: ChatSession
  readonly theme: Theme
  readonly onEdit: (approval: Approval) => void
  readonly onReason: (approval: Approval) => void
}
type PanelDecision = Pick<ToolDecision, 'behavior' | 'remember' | 'updated_input' | 'message'>
type OpenForm = OpenRequestOf<KindOfForm<'questions'>>
type NamedPanel = { readonly key: string; readonly create: () => Panel }

const CONFLICT = 409

export class AnswerPanels {
  readonly #context: PanelContext
  /** Answers to the questions of one call, of which some are still open. */
  readonly #givenAnswers = new Map<string, Record<string, string[]>>()
  #current: { readonly key: string; readonly panel: Panel } | undefined

  constructor(context: PanelContext) {
    this.#context = context
  }

  /** Returns the same panel as long as the same thing waits. */
  panel(): Panel | undefined {
    const namedPanel = this.#next()
    if (namedPanel?.key !== this.#current?.key)
      this.#current = namedPanel && { key: namedPanel.key, panel: namedPanel.create() }
    return this.#current?.panel
  }

  /** Allows the call, with another input if there is one. */
  allow(approval: Approval, updated_input?: Record<string, unknown>): void {
    this.#decide(approval, { behavior: 'allow', ...(updated_input && { updated_input }) })
  }

  /** Denies the call. The agent reads the reason, if there is one. */
  deny(approval: Approval, reason: string): void {
    this.#decide(approval, { behavior: 'deny', ...(reason !== '' && { message: reason }) })
  }

  /** Everything that the call is. Where an edit is in its file is known a little later. */
  bodyOf({ call }: Approval): (width: number) => string[] {
    const { session, theme } = this.#context
    const lookUp = () => startsOf(session.state, call.tool_use_id)
    return cacheLines((width, starts) => approvalLines(call, { width, theme, starts }), lookUp)
  }

  #next(): NamedPanel | undefined {
    const { requests, answeredHere } = this.#context.session.state
    const waiting = requests
      .flatMap((request) => (request.kind === 'permission' ? approvalsIn(request) : []))
      .filter((each) => !answeredHere.has(approvalId(each)))
    const [approval] = waiting
    if (approval) return this.#approval(approval, waiting.length)
    const others = requests.filter(({ request_id }) => !answeredHere.has(request_id))
    // What waits for a decision waits only for a short time, as a command does for a host.
    const decision = others.find((request) => hasForm(request, 'decision'))
    if (decision) return this.#decision(decision)
    const question = others.find((request) => hasForm(request, 'questions'))
    return question && this.#question(question)
  }

  #approval(approval: Approval, waiting: number): NamedPanel {
    const { call, agent } = approval
    const { theme, onEdit, onReason } = this.#context
    const decide = (decision: PanelDecision) => () => this.#decide(approval, decision)
    const keys: DecisionKey[] = [
      { key: 'y', label: 'yes', run: decide({ behavior: 'allow' }) },
      { key: 'n', label: 'no', run: decide({ behavior: 'deny' }) },
      ...(call.rules?.length
        ? [{ key: 'a', label: 'always', run: decide({ behavior: 'allow', remember: true }) }]
        : []),
      { key: 'e', label: 'edit', run: () => onEdit(approval) },
      { key: 'r', label: 'no, with a reason', run: () => onReason(approval) },
    ]
    const who = agent === undefined ? '' : ` of the subagent ${revealLine(agent)}`
    const title = `Allow ${revealLine(call.name)}${who}?${waiting > 1 ? ` (${waiting} calls wait)` : ''}`
    const body = this.bodyOf(approval)
    return {
      key: `call ${approvalId(approval)} ${waiting}`,
      create: () => new DecisionPanel({ title, body, keys }, theme),
    }
  }

  #decision(request: OpenRequestOf<KindOfForm<'decision'>>): NamedPanel {
    const { kind, request_id } = request
    const { subject, question, remembered } = decisionOf(request)
    const { theme } = this.#context
    const answer = (behavior: 'allow' | 'deny', remember: boolean) => () =>
      this.#answer(
        request_id,
        (session) => session.conversation.requests.answer(request_id, decide(kind, behavior, remember)),
        remember && remembered !== undefined ? revealLine(remembered) : undefined,
      )
    const keys: DecisionKey[] = [
      { key: 'y', label: 'yes', run: answer('allow', false) },
      { key: 'n', label: 'no', run: answer('deny', false) },
      ...(remembered === undefined ? [] : [{ key: 'a', label: 'always', run: answer('allow', true) }]),
    ]
    const body = (width: number) => exactLines(revealLine(subject), width, '  ', '    ')
    return {
      key: `decision ${request_id}`,
      create: () => new DecisionPanel({ title: question, body, keys }, theme),
    }
  }

  #question(form: OpenForm): NamedPanel | undefined {
    const { questions } = form.payload
    const givenAnswers = this.#givenAnswers.get(form.request_id) ?? {}
    const at = Object.keys(givenAnswers).length
    const question = questions[at]
    if (!question) return undefined
    const answer = (answers: string[]) => this.#give(form, { ...givenAnswers, [at]: answers })
    const labels = question.options.map(({ label }) => label)
    const count = questions.length > 1 ? ` (${at + 1} of ${questions.length})` : ''
    const options = question.options.map(({ label, description }) => ({
      label: cleanLine(label),
      description: cleanText(description).replaceAll('\n', ' '),
    }))
    const several = question.multi_select ? 'Space marks, Enter answers' : 'Enter or a number answers'
    const choice = {
      title: `${cleanText(question.header)}${count}`,
      text: cleanText(question.question),
      options,
      isMultiple: question.multi_select,
      hint: `${several}; or type another answer`,
      onChoose: (chosenRows: readonly number[]) => answer(chosenRows.map((each) => labels[each] ?? '')),
      onText: (text: string) => answer([text]),
    }
    return { key: `question ${form.request_id} ${at}`, create: () => new ChoicePanel(choice, this.#context.theme) }
  }

  /** Sends the answers when there is one for each question. */
  #give({ kind, request_id, payload }: OpenForm, answers: Record<string, string[]>): void {
    this.#givenAnswers.set(request_id, answers)
    if (Object.keys(answers).length < payload.questions.length) return this.#context.session.dispatch(REDRAW)
    this.#givenAnswers.delete(request_id)
    this.#answer(request_id, (session) => session.conversation.requests.answer(request_id, { kind, answers }))
  }

  #decide(approval: Approval, decision: PanelDecision): void {
    const { requestId, call } = approval
    const { tool_use_id, input_hash } = call
    const send = ({ conversation }: ChatSession) =>
      conversation.requests.answer(requestId, {
        kind: 'permission',
        decisions: [{ tool_use_id, input_hash, ...decision }],
      })
    this.#answer(approvalId(approval), send)
  }

  /**
   * What waits is hidden at once, and shown again if the answer could not be sent. `allowed`: what needs no decision any
   * more then.
   */
  #answer(id: string, send: (session: ChatSession) => Promise<unknown>, allowedTool?: string): void {
    const { session } = this.#context
    session.dispatch({ type: 'Answered', id })
    const confirm = () => {
      if (allowedTool !== undefined) session.say(`Allowed in this conversation from now on: ${allowedTool}`)
    }
    send(session).then(confirm, (error: unknown) => {
      if (!(error instanceof AgentServerError) || error.status !== CONFLICT) session.fail(error)
      // The event of the other answer says what it was, unless it is here already.
      else if (!isWaiting(session.state, id)) session.say('Another client answered first.')
      session.dispatch({ type: 'Unanswered', id })
    })
  }
}

/** Changes only what is drawn. */
const REDRAW = { type: 'Unanswered', id: '' } as const

/** `id`: of a request, or of one call of a permission request. */
export const isWaiting = ({ requests }: ChatState, id: string | undefined): boolean =>
  requests.some((request) =>
    request.kind === 'permission'
      ? approvalsIn(request).some((approval) => approvalId(approval) === id)
      : request.request_id === id,
  )

/** The input of a call can be megabytes, and is drawn with every frame. */
function cacheLines<T>(draw: (width: number, seen: T) => string[], lookUp: () => T): (width: number) => string[] {
  let last: { width: number; seen: T; lines: string[] } | undefined
  return (width) => {
    const seenValue = lookUp()
    if (last?.width !== width || last.seen !== seenValue)
      last = { width, seen: seenValue, lines: draw(width, seenValue) }
    return last.lines
  }
}
