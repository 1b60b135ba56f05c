/** A line that a person types or pastes. A key is shown as dots. */
import { matchesKey } from '@earendil-works/pi-tui'
import { oneLine, wrapText } from '../chat/render/lines.ts'
import type { Theme } from '../chat/render/theme.ts'
import { cleanLine } from '../chat/state/clean-text.ts'
import type { ShownQuestion } from './shown-question.ts'
import { withoutLastCharacter } from '../terminal/typed-text.ts'

export type EntryQuestion = {
  readonly title: string
  /** The text below the title; may be empty. */
  readonly text: string
  readonly isSecret: boolean
  readonly canGoBack: boolean
  /** Returns a sentence that says what is wrong with the text. */
  readonly faultOf?: (text: string) => string | undefined
  /** What is wrong with an earlier answer. */
  readonly fault?: string | undefined
}

/** The longest keys are some thousand characters. */
const MAX_CHARS = 10_000
const MAX_DOTS = 40

export class TextEntry implements ShownQuestion {
  readonly #question: EntryQuestion
  readonly #theme: Theme
  readonly #answer: (text: string | undefined) => void
  #value = ''
  #fault: string | undefined

  constructor(question: EntryQuestion, theme: Theme, answer: (text: string | undefined) => void) {
    this.#question = question
    this.#theme = theme
    this.#answer = answer
    this.#fault = question.fault
  }

  handleKey(key: string): void {
    if (matchesKey(key, 'enter')) this.#submit()
    else if (matchesKey(key, 'left')) this.#goBack()
    else if (matchesKey(key, 'ctrl+u')) this.#value = ''
    else if (matchesKey(key, 'backspace')) this.#value = withoutLastCharacter(this.#value)
    else if (key !== '' && !/\p{Cc}/u.test(key)) this.handlePaste(key)
  }

  handlePaste(text: string): void {
    // A key is often copied with the end of its line.
    this.#value = (this.#value + cleanLine(text.trim() === '' ? text : text.trim())).slice(0, MAX_CHARS)
    this.#fault = undefined
  }

  render(width: number): string[] {
    const { title, text, isSecret, canGoBack } = this.#question
    const shownText = isSecret ? '•'.repeat(Math.min(MAX_DOTS, this.#value.length)) : this.#value
    const keys = ['Enter', ...(canGoBack ? ['Left goes back'] : []), 'Esc leaves']
    return [
      ...wrapText(this.#theme.bold(title), width),
      ...(text === '' ? [] : wrapText(this.#theme.dim(text), width)),
      // The end of a long text is what is being typed.
      ...wrapText(`${this.#theme.cyan('>')} ${shownText}▏`, width).slice(-2),
      ...(this.#fault === undefined ? [] : wrapText(this.#theme.yellow(this.#fault), width)),
      this.#theme.dim(oneLine(keys.join(' · '), width)),
    ]
  }

  #submit(): void {
    const text = this.#value.trim()
    if (text === '') return
    this.#fault = this.#question.faultOf?.(text)
    if (this.#fault === undefined) this.#answer(text)
  }

  #goBack(): void {
    if (this.#value === '' && this.#question.canGoBack) this.#answer(undefined)
  }
}
