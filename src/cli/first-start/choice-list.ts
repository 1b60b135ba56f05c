/** A list to choose from with the arrows. What is typed searches it. */
import { matchesKey, visibleWidth } from '@earendil-works/pi-tui'
import { oneLine, wrapText } from '../chat/render/lines.ts'
import type { Theme } from '../chat/render/theme.ts'
import { cleanLine } from '../chat/state/clean-text.ts'
import type { ShownQuestion } from './shown-question.ts'

export type ListOption = {
  readonly label: string
  /** What is shown next to it. */
  readonly detail: string
}

export type ListQuestion = {
  readonly title: string
  /** The text below the title; may be empty. */
  readonly text: string
  readonly options: readonly ListOption[]
  readonly canGoBack: boolean
}

const MAX_ROWS = 15
const MAX_LABEL_COLUMNS = 44
const MAX_SEARCH_CHARS = 100

export class ChoiceList implements ShownQuestion {
  readonly #list: ListQuestion
  readonly #theme: Theme
  readonly #answer: (index: number | undefined) => void
  readonly #options: readonly ListOption[]
  #search = ''
  #at = 0

  constructor(list: ListQuestion, theme: Theme, answer: (index: number | undefined) => void) {
    this.#list = list
    this.#theme = theme
    this.#answer = answer
    this.#options = list.options.map(({ label, detail }) => ({ label: cleanLine(label), detail: cleanLine(detail) }))
  }

  handleKey(key: string): void {
    const foundRows = this.#found()
    const last = Math.max(0, foundRows.length - 1)
    if (matchesKey(key, 'up')) this.#at = this.#at === 0 ? last : this.#at - 1
    else if (matchesKey(key, 'down')) this.#at = this.#at >= last ? 0 : this.#at + 1
    else if (matchesKey(key, 'pageUp')) this.#at = Math.max(0, this.#at - MAX_ROWS)
    else if (matchesKey(key, 'pageDown')) this.#at = Math.min(last, this.#at + MAX_ROWS)
    else if (matchesKey(key, 'left') && this.#list.canGoBack) this.#answer(undefined)
    else if (matchesKey(key, 'backspace')) this.#searchFor(this.#search.slice(0, -1))
    else if (matchesKey(key, 'enter')) this.#choose(foundRows[this.#at])
    else if (key !== '' && !/\p{Cc}/u.test(key)) this.#searchFor(this.#search + key)
  }

  handlePaste(text: string): void {
    this.#searchFor(this.#search + text)
  }

  render(width: number, rows: number): string[] {
    const { title, text, canGoBack } = this.#list
    const head = [
      ...wrapText(this.#theme.bold(title), width),
      ...(text === '' ? [] : wrapText(this.#theme.dim(text), width)),
    ]
    const foundRows = this.#found()
    const space = Math.max(1, Math.min(MAX_ROWS, rows - head.length - 3))
    const first = Math.max(0, Math.min(this.#at - Math.floor(space / 2), foundRows.length - space))
    const columns = Math.min(MAX_LABEL_COLUMNS, Math.max(0, ...this.#options.map(({ label }) => visibleWidth(label))))
    const lines = foundRows
      .slice(first, first + space)
      .map((index, at) => this.#line(index, first + at === this.#at, columns))
    const none = foundRows.length === 0 ? [this.#theme.yellow('  None has it.')] : []
    const more = foundRows.length > space ? [this.#theme.dim(`  ${this.#at + 1} of ${foundRows.length}`)] : []
    const search = this.#search === '' ? [] : [`${this.#theme.cyan('Search:')} ${this.#search}▏`]
    const keys = ['Up and Down, Enter', 'type to search', ...(canGoBack ? ['Left goes back'] : []), 'Esc leaves']
    return [...head, ...search, ...lines, ...none, ...more, this.#theme.dim(keys.join(' · '))].map((line) =>
      oneLine(line, width),
    )
  }

  #choose(index: number | undefined): void {
    if (index !== undefined) this.#answer(index)
  }

  #searchFor(text: string): void {
    this.#search = cleanLine(text).slice(0, MAX_SEARCH_CHARS)
    this.#at = 0
  }

  /** The indexes of the options that have all words. */
  #found(): number[] {
    const words = this.#search.toLowerCase().split(' ')
    return this.#options.flatMap(({ label, detail }, index) => {
      const text = `${label} ${detail}`.toLowerCase()
      return words.every((word) => text.includes(word)) ? [index] : []
    })
  }

  #line(index: number, isCurrent: boolean, columns: number): string {
    const { label = '', detail = '' } = this.#options[index] ?? {}
    const name = oneLine(label, columns)
    const paddedName = name + ' '.repeat(Math.max(0, columns - visibleWidth(name)))
    const shownLine = isCurrent ? this.#theme.bold(this.#theme.cyan(`> ${paddedName}`)) : `  ${paddedName}`
    return detail === '' ? shownLine.trimEnd() : `${shownLine}  ${this.#theme.dim(detail)}`
  }
}
