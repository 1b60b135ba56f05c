/** Asks for a decision about one thing and shows all of it, in pages if the terminal is too small. */
import { matchesKey } from '@earendil-works/pi-tui'
import { fit, oneLine, wrapText } from './lines.ts'
import type { Panel } from './panel.ts'
import { NOT_READY } from './panel.ts'
import type { Theme } from './theme.ts'

export type DecisionKey = { readonly key: string; readonly label: string; readonly run: () => void }

export type DecisionText = {
  readonly title: string
  /** Everything that is decided about. */
  readonly body: (width: number) => string[]
  readonly keys: readonly DecisionKey[]
}

/** Lines of the page, even in a terminal that is too small. */
const MIN_BODY_ROWS = 3

export class DecisionPanel implements Panel {
  readonly #decision: DecisionText
  readonly #theme: Theme
  #top = 0
  #rows = MIN_BODY_ROWS
  #length = 0

  constructor(decision: DecisionText, theme: Theme) {
    this.#decision = decision
    this.#theme = theme
  }

  render(width: number, rows: number, isReady: boolean): string[] {
    const head = wrapText(this.#theme.bold(this.#theme.yellow(this.#decision.title)), width)
    const keys = this.#decision.keys.map(({ key, label }) => `${this.#theme.bold(`[${key}]`)} ${label}`).join('  ')
    const foot = keys === '' ? [] : wrapText(isReady ? keys : this.#theme.dim(NOT_READY), width)
    const body = this.#decision.body(width)
    this.#length = body.length
    const space = Math.max(MIN_BODY_ROWS, rows - head.length - foot.length)
    if (body.length <= space) return fit([...head, ...body, ...foot], width)
    this.#rows = Math.max(MIN_BODY_ROWS, space - 1)
    this.#scroll(0)
    return fit([...head, ...body.slice(this.#top, this.#top + this.#rows), this.#position(width), ...foot], width)
  }

  handleKey(key: string): boolean {
    if (this.#length > this.#rows) {
      if (matchesKey(key, 'down') || matchesKey(key, 'up')) return this.#scroll(matchesKey(key, 'down') ? 1 : -1)
      if (matchesKey(key, 'pageDown') || key === ' ') return this.#scroll(this.#rows)
      if (matchesKey(key, 'pageUp')) return this.#scroll(-this.#rows)
    }
    const chosenKey = this.#decision.keys.find((each) => each.key === key.toLowerCase())
    chosenKey?.run()
    return chosenKey !== undefined
  }

  #scroll(lines: number): boolean {
    this.#top = Math.max(0, Math.min(this.#top + lines, this.#length - this.#rows))
    return true
  }

  #position(width: number): string {
    const end = Math.min(this.#top + this.#rows, this.#length)
    const hiddenLines = this.#length - (end - this.#top)
    const text = `Lines ${this.#top + 1}-${end} of ${this.#length}, ${hiddenLines} hidden (Space, PgUp, PgDn)`
    return this.#theme.yellow(oneLine(text, width))
  }
}
