/** A list to choose from with the arrows, a number, or Space and Enter for several. */
import { matchesKey } from '@earendil-works/pi-tui'
import { fit, oneLine, wrapText } from './lines.ts'
import type { Panel } from './panel.ts'
import { NOT_READY } from './panel.ts'
import type { Theme } from './theme.ts'

export type Choice = {
  readonly title: string
  readonly text: string
  readonly options: readonly { readonly label: string; readonly description: string }[]
  readonly isMultiple: boolean
  /** What else can be done, as the last line. */
  readonly hint: string
  /** Indexes of the chosen options. */
  readonly onChoose: (chosen: readonly number[]) => void
  readonly onText?: (text: string) => void
}

const ROWS_PER_OPTION = 2

export class ChoicePanel implements Panel {
  readonly takeText: Panel['takeText']
  readonly #choice: Choice
  readonly #theme: Theme
  readonly #marked = new Set<number>()
  #at = 0

  constructor(choice: Choice, theme: Theme) {
    this.#choice = choice
    this.#theme = theme
    if (choice.onText) this.takeText = choice.onText
  }

  render(width: number, rows: number, isReady: boolean): string[] {
    const { title, text, options, hint } = this.#choice
    const head = [
      ...wrapText(this.#theme.bold(this.#theme.yellow(title)), width),
      ...(text === '' ? [] : wrapText(text, width)),
    ]
    const space = Math.max(1, Math.floor((rows - head.length - 1) / ROWS_PER_OPTION))
    const first = Math.max(0, Math.min(this.#at - Math.floor(space / 2), options.length - space))
    const shownLines = options
      .slice(first, first + space)
      .flatMap((option, at) => this.#linesOf(option, first + at, width))
    const more =
      options.length > space ? [this.#theme.dim(oneLine(`  ${this.#at + 1} of ${options.length}`, width))] : []
    return fit([...head, ...shownLines, ...more, this.#theme.dim(oneLine(isReady ? hint : NOT_READY, width))], width)
  }

  handleKey(key: string): boolean {
    const { options, isMultiple } = this.#choice
    if (matchesKey(key, 'up') || matchesKey(key, 'down')) {
      this.#at = (this.#at + (matchesKey(key, 'up') ? options.length - 1 : 1)) % options.length
      return true
    }
    if (isMultiple && key === ' ') return this.#mark(this.#at)
    const number = /^[1-9]$/.test(key) ? Number(key) - 1 : -1
    if (number >= 0 && number < options.length) return isMultiple ? this.#mark(number) : this.#choose([number])
    if (!matchesKey(key, 'enter')) return false
    return this.#choose(this.#marked.size > 0 ? [...this.#marked].toSorted((a, b) => a - b) : [this.#at])
  }

  #mark(at: number): true {
    this.#at = at
    if (!this.#marked.delete(at)) this.#marked.add(at)
    return true
  }

  #choose(chosenRows: readonly number[]): true {
    this.#choice.onChoose(chosenRows)
    return true
  }

  #linesOf({ label, description }: Choice['options'][number], at: number, width: number): string[] {
    const box = this.#choice.isMultiple ? `[${this.#marked.has(at) ? 'x' : ' '}] ` : ''
    const line = `${at === this.#at ? '>' : ' '} ${at + 1}. ${box}${label}`
    const shownLine = oneLine(at === this.#at ? this.#theme.bold(this.#theme.cyan(line)) : line, width)
    return description === '' ? [shownLine] : [shownLine, this.#theme.dim(oneLine(`     ${description}`, width))]
  }
}
