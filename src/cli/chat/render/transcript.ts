/**
 * The conversation so far, as a component. An item is drawn again only when it, the width or the look has changed.
 *
 * What has scrolled out of the screen cannot be changed there: then everything is written again. That is rare, bounded,
 * and not repeated before `REDRAW_MS`.
 */
import type { Component } from '@earendil-works/pi-tui'
import type { Item } from '../state/chat-state.ts'
import { linesOfItem } from './item-lines.ts'
import { fit, oneLine } from './lines.ts'
import { safeLines } from './safe-lines.ts'
import { StreamedMarkdown } from './streamed-markdown.ts'
import type { Theme } from './theme.ts'

type TranscriptOptions = {
  readonly theme: Theme
  /** The first line that the terminal still shows. */
  readonly topLine: () => number
  readonly redrawAfter: (ms: number) => void
}
type Lines = readonly string[]

const REDRAW_MS = 1000
/** While somebody changes the width, lines are cut and not wrapped again. */
const SETTLED_MS = 150
/** Lines in the terminal. Beyond that the oldest items are dropped in one step, because that writes everything again. */
const MAX_LINES = 5000
const KEPT_LINES = 2500
const LINES_WHILE_RESIZED = 200

export class Transcript implements Component {
  readonly #options: TranscriptOptions
  readonly #streamed = new StreamedMarkdown()
  #items: readonly Item[] = []
  /** The first item that is shown; undefined: all are. */
  #first: Item | undefined
  /** The lines of each item in the last frame. */
  #shown: readonly Lines[] = []
  #isExpanded = false
  #drawn = new WeakMap<Item, Lines>()
  #width = 0
  #resizedAt = -Infinity
  #redrawnAt = -Infinity

  constructor(options: TranscriptOptions) {
    this.#options = options
  }

  show(items: readonly Item[]): void {
    this.#items = items
  }

  toggleExpanded(): void {
    this.#isExpanded = !this.#isExpanded
    this.invalidate()
  }

  invalidate(): void {
    this.#drawn = new WeakMap()
    this.#redrawnAt = -Infinity
  }

  render(width: number): string[] {
    if (this.#isResizing(width)) return this.#cutLines(width)
    const lines = this.#linesOfItems()
    this.#shown = this.#mayRedraw(lines) ? lines : this.#withoutRedraw(lines)
    return [...this.#dropped(), ...this.#shown.flat()]
  }

  /** True for a short time after each change of the width. */
  #isResizing(width: number): boolean {
    const now = performance.now()
    if (this.#width === 0) this.#width = width
    if (width === this.#width && this.#resizedAt === -Infinity) return false
    if (width !== this.#width) {
      this.#width = width
      this.#resizedAt = now
    }
    const wait = this.#resizedAt + SETTLED_MS - now
    if (wait > 0) {
      this.#options.redrawAfter(wait)
      return true
    }
    this.#resizedAt = -Infinity
    this.invalidate()
    return false
  }

  #cutLines(width: number): string[] {
    return fit(this.#shown.flat().slice(-LINES_WHILE_RESIZED), width)
  }

  #linesOfItems(): Lines[] {
    const start = this.#first ? Math.max(0, this.#items.indexOf(this.#first)) : 0
    const items = this.#items.slice(start)
    const lines = items.map((item) => this.#linesOf(item))
    const count = lengthOf(lines)
    if (count <= MAX_LINES || items.length < 2) return lines
    let [droppedItems, remainingLines] = [0, count]
    while (remainingLines > KEPT_LINES && droppedItems < items.length - 1)
      remainingLines -= lines[droppedItems++]?.length ?? 0
    this.#first = items[droppedItems]
    return lines.slice(droppedItems)
  }

  #dropped(): string[] {
    if (!this.#first || !this.#items.includes(this.#first) || this.#items[0] === this.#first) return []
    return [oneLine(this.#options.theme.dim('Earlier parts of this conversation are not shown.'), this.#width)]
  }

  /** Returns true if the terminal still shows all lines that change, or has not been written again for a while. */
  #mayRedraw(lines: readonly Lines[]): boolean {
    const now = performance.now()
    // Another conversation, or one that was cleared.
    if (lines.length < this.#shown.length) return true
    const firstChanged = lines.findIndex((each, at) => each !== this.#shown[at])
    if (
      firstChanged === -1 ||
      firstChanged >= this.#shown.length ||
      this.#firstChange(lines, firstChanged) >= this.#options.topLine()
    )
      return true
    const wait = this.#redrawnAt + REDRAW_MS - now
    if (wait > 0) this.#options.redrawAfter(wait)
    else this.#redrawnAt = now
    return wait <= 0
  }

  #firstChange(lines: readonly Lines[], firstChanged: number): number {
    const [before = [], after = []] = [this.#shown[firstChanged], lines[firstChanged]]
    const same = before.findIndex((line, at) => line !== after[at])
    return lengthOf(lines.slice(0, firstChanged)) + (same === -1 ? before.length : same)
  }

  /** What the terminal does not show any more stays as it was written. */
  #withoutRedraw(lines: readonly Lines[]): Lines[] {
    const top = this.#options.topLine()
    let end = 0
    return lines.map((each, at) => {
      const start = end
      const before = this.#shown[at] ?? each
      const isAbove = start < top && before.some((line, index) => start + index < top && line !== each[index])
      const shownLines = isAbove ? before : each
      end += shownLines.length
      return shownLines
    })
  }

  #linesOf(item: Item): Lines {
    const knownLines = this.#drawn.get(item)
    if (knownLines) return knownLines
    const lines = safeLines(this.#draw(item))
    this.#drawn.set(item, lines)
    return lines
  }

  /** A text for which the library throws must not end the chat, now and each time that the conversation is resumed. */
  #draw(item: Item): string[] {
    const { theme } = this.#options
    const look = { width: this.#width, theme, isExpanded: this.#isExpanded, streamed: this.#streamed }
    try {
      return linesOfItem(item, look)
    } catch (error) {
      return ['', oneLine(theme.red(`This part cannot be shown: ${String(error)}`), this.#width)]
    }
  }
}

const lengthOf = (lines: readonly Lines[]): number => lines.reduce((sum, { length }) => sum + length, 0)
