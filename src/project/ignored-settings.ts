/** The list of what was found and has no effect: each entry says why. Bounded, as the files decide what is in it. */
import type { IgnoredSetting } from '../contract/project/project-settings.ts'
import { MAX_IGNORED } from './project-limits.ts'
import { onOneLine } from './one-line.ts'

/** Characters of each text. */
const MAX_CHARS = 300

export const NOT_TRUSTED = 'The project is not trusted: the request has no `trust_project: true`.'

export class IgnoredSettings {
  readonly #items: IgnoredSetting[] = []
  #more = 0

  add(what: string, path: string, reason: string): void {
    if (this.#items.length < MAX_IGNORED) {
      const [shownWhat, shownPath, shownReason] = [what, path, reason].map((text) => onOneLine(text, MAX_CHARS))
      this.#items.push({ what: shownWhat ?? '', path: shownPath ?? '', reason: shownReason ?? '' })
    } else this.#more += 1
  }

  list(): IgnoredSetting[] {
    if (this.#more === 0) return this.#items
    return [...this.#items, { what: `${this.#more} more`, path: '', reason: `The list has ${MAX_IGNORED} entries.` }]
  }
}
