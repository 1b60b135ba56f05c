/** Ctrl+R: searches the earlier prompts while its words are typed, the latest first, as in shells. */
import { matchesKey } from '@earendil-works/pi-tui'
import { oneLine, wrapText } from '../render/lines.ts'
import type { Theme } from '../render/theme.ts'
import { cleanLine } from '../state/clean-text.ts'
import { withoutLastCharacter } from '../../terminal/typed-text.ts'

/** What a key has done. `take` puts the match into the prompt, and `send` sends it, too; `pass` also uses the key there. */
export type SearchStep = 'search' | 'leave' | 'take' | 'send' | 'pass'

/** What is shown of a match; the prompt has all of it when it is taken. */
const MAX_LINES = 3
const MAX_CHARS = 1000

export class HistorySearch {
  readonly #prompts: readonly string[]
  readonly #theme: Theme
  #query = ''
  #at: number

  /** `prompts`: the oldest first. */
  constructor(prompts: readonly string[], theme: Theme) {
    this.#prompts = [...new Set(prompts.toReversed())].toReversed()
    this.#theme = theme
    this.#at = this.#prompts.length
  }

  /** Undefined before something is searched for, and if nothing has it. */
  get match(): string | undefined {
    return this.#prompts[this.#at]
  }

  handleKey(key: string): SearchStep {
    if (matchesKey(key, 'ctrl+c') || matchesKey(key, 'ctrl+g')) return 'leave'
    if (matchesKey(key, 'enter')) return this.match === undefined ? 'leave' : 'send'
    if (matchesKey(key, 'escape') || matchesKey(key, 'tab')) return 'take'
    if (matchesKey(key, 'ctrl+r')) return this.#older()
    if (matchesKey(key, 'backspace')) return this.#search(withoutLastCharacter(this.#query))
    if (key !== '' && !/\p{Cc}/u.test(key)) return this.type(key)
    return 'pass'
  }

  /** Adds text, which may be a paste. */
  type(text: string): 'search' {
    return this.#search(this.#query + cleanLine(text).slice(0, MAX_CHARS))
  }

  lines(width: number, sends: boolean): string[] {
    const keys = `${sends ? 'Enter sends it, Esc edits it' : 'Enter or Esc takes it'}, Ctrl+R goes to an older one, Ctrl+C back`
    const isMissing = this.match === undefined && this.#query !== ''
    const foundLine = cleanLine((this.match ?? '').slice(0, MAX_CHARS))
    const shownLines = wrapText(foundLine, width, '  ')
    const more =
      shownLines.length > MAX_LINES
        ? [oneLine(`${shownLines[MAX_LINES - 1]} …`, width)]
        : shownLines.slice(MAX_LINES - 1)
    return [
      // The end of a long text is what is being typed.
      ...wrapText(`${this.#theme.cyan('Search earlier prompts:')} ${this.#query}▏`, width).slice(-2),
      ...(isMissing ? [this.#theme.yellow(oneLine('  None has it.', width))] : []),
      ...(foundLine === '' ? [] : [...shownLines.slice(0, MAX_LINES - 1), ...more]),
      this.#theme.dim(oneLine(keys, width)),
    ]
  }

  #older(): 'search' {
    const older = this.#find(this.match === undefined ? this.#prompts.length - 1 : this.#at - 1)
    if (older >= 0) this.#at = older
    return 'search'
  }

  /** A match that still fits stays, as in shells. */
  #search(query: string): 'search' {
    const isLonger = query.startsWith(this.#query)
    this.#query = query
    const last = this.#prompts.length - 1
    const at = query === '' ? -1 : this.#find(isLonger ? Math.min(this.#at, last) : last)
    this.#at = at < 0 ? this.#prompts.length : at
    return 'search'
  }

  /** Returns the place of the latest prompt that fits, from there on; -1 if none does. Capitals count if some are typed. */
  #find(from: number): number {
    const ignoresCase = this.#query === this.#query.toLowerCase()
    return this.#prompts.findLastIndex(
      (prompt, at) => at <= from && (ignoresCase ? prompt.toLowerCase() : prompt).includes(this.#query),
    )
  }
}
