/** The conversation so far, as a component. An item is drawn again only when it, the width or the look has changed. */
import type { Component } from '@earendil-works/pi-tui'
import type { Item } from '../state/chat-state.ts'
import { linesOfItem } from './item-lines.ts'
import { StreamedMarkdown } from './streamed-markdown.ts'
import type { Theme } from './theme.ts'

export class Transcript implements Component {
  readonly #theme: Theme
  #items: readonly Item[] = []
  readonly #streamed = new StreamedMarkdown()
  #isExpanded = false
  #drawn = new WeakMap<Item, readonly string[]>()
  #width = 0

  constructor(theme: Theme) {
    this.#theme = theme
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
  }

  render(width: number): string[] {
    if (width !== this.#width) this.invalidate()
    this.#width = width
    return this.#items.flatMap((item) => this.#linesOf(item))
  }

  #linesOf(item: Item): readonly string[] {
    const known = this.#drawn.get(item)
    if (known) return known
    const lines = linesOfItem(item, {
      width: this.#width,
      theme: this.#theme,
      isExpanded: this.#isExpanded,
      streamed: this.#streamed,
    })
    this.#drawn.set(item, lines)
    return lines
  }
}
