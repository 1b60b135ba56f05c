/** What is written in the prompt about a call that waits: its changed input, or the reason why it is denied. */
import type { DecisionText } from '../render/decision-panel.ts'
import { DecisionPanel } from '../render/decision-panel.ts'
import type { Panel } from '../render/panel.ts'
import type { Theme } from '../render/theme.ts'
import type { Approval, ChatState } from '../state/chat-state.ts'
import { revealText } from '../state/clean-text.ts'
import { approvalId } from '../state/pending.ts'
import type { AnswerPanels } from './answer-panels.ts'
import { isWaiting } from './answer-panels.ts'
import { editableText, editedInput } from './approval-text.ts'

/** The prompt, and the answers of the conversation that is shown. */
type Prompt = { draft: string }
type Editing = {
  readonly approval: Approval
  readonly panel: Panel
  /** Throws if the text cannot be used. */ readonly submit: (text: string) => void
}

export class CallEditing {
  readonly #theme: Theme
  readonly #prompt: Prompt
  #editing: Editing | undefined

  constructor(theme: Theme, prompt: Prompt) {
    this.#theme = theme
    this.#prompt = prompt
  }

  get isActive(): boolean {
    return this.#editing !== undefined
  }

  get panel(): Panel | undefined {
    return this.#editing?.panel
  }

  /** Throws if the input is too long for the prompt. */
  editInput(approval: Approval, answers: AnswerPanels): void {
    const draft = editableText(approval.call)
    const title = `Edit the call of ${revealText(approval.call.name)}: Enter runs it, Esc goes back`
    const submit = (text: string) => answers.allow(approval, editedInput(approval.call, text))
    this.#begin(approval, { title, draft, submit, body: answers.bodyOf(approval) })
  }

  writeReason(approval: Approval, answers: AnswerPanels): void {
    const title = `Why not ${revealText(approval.call.name)}? Enter denies it with this reason, Esc goes back`
    const submit = (text: string) => answers.deny(approval, text)
    this.#begin(approval, { title, draft: '', submit, body: answers.bodyOf(approval) })
  }

  /** Throws if the text cannot be used, which is then in the prompt again. */
  submit(text: string): void {
    const editing = this.#editing
    this.#editing = undefined
    try {
      editing?.submit(text)
    } catch (error) {
      this.#editing = editing
      this.#prompt.draft = text
      throw error
    }
  }

  cancel(): void {
    if (!this.#editing) return
    this.#editing = undefined
    this.#prompt.draft = ''
  }

  /** Ends when another client has answered in the meantime. */
  update(state: ChatState): void {
    if (this.#editing && !isWaiting(state, approvalId(this.#editing.approval))) this.cancel()
  }

  #begin(approval: Approval, { title, body, draft, submit }: EditedDraft): void {
    this.#editing = { approval, submit, panel: new DecisionPanel({ title, body, keys: [] }, this.#theme) }
    this.#prompt.draft = draft
  }
}

type EditedDraft = Pick<Editing, 'submit'> & Pick<DecisionText, 'title' | 'body'> & { readonly draft: string }
