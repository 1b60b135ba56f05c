/** Comments on lines of changes: drafts of the browser until they are sent as one message. */
import type { ReadonlySignal } from '@preact/signals'
import { signal } from '@preact/signals'
import type { LineAnchor } from './diff-lines.ts'
import { keyOfAnchor } from './diff-lines.ts'
import type { LineComment } from './line-comment.ts'
import { draftOf, onOtherTab, remember, rememberedValue } from './remembered.ts'

/** The comments of one conversation, in the order in which they were begun. Other tabs write them, too. */
export class Comments {
  readonly #name: string
  readonly #all = signal<readonly LineComment[]>([])

  constructor(conversationId: string) {
    this.#name = draftOf(`comments ${conversationId}`)
    this.#all.value = storedComments(this.#name)
  }

  get all(): ReadonlySignal<readonly LineComment[]> {
    return this.#all
  }

  /** Keeps up with other tabs. Returns what ends it. */
  follow(): () => void {
    return onOtherTab(this.#name, () => (this.#all.value = storedComments(this.#name)))
  }

  /** An empty text removes the comment. */
  set(anchor: LineAnchor, base: string, comment: string): void {
    const { path, side, number, text } = anchor
    const key = keyOfAnchor(anchor)
    const all = this.#all.peek()
    const place = all.findIndex((other) => keyOfAnchor(other) === key)
    if (comment === '') this.#write(all.filter((_, index) => index !== place))
    else this.#write(all.toSpliced(place === -1 ? all.length : place, 1, { path, side, number, text, base, comment }))
  }

  /** Removes what was sent. A comment that was changed since stays. */
  remove(sentComments: readonly LineComment[]): void {
    const sentKeys = new Set(sentComments.map(wholeKeyOf))
    // Nobody has followed the other tabs since this screen was left.
    this.#write(storedComments(this.#name).filter((comment) => !sentKeys.has(wholeKeyOf(comment))))
  }

  #write(all: readonly LineComment[]): void {
    this.#all.value = all
    remember(this.#name, all.length > 0 ? JSON.stringify(all) : undefined)
  }
}

const wholeKeyOf = (comment: LineComment): string => `${keyOfAnchor(comment)}\0${comment.comment}`

function storedComments(name: string): readonly LineComment[] {
  try {
    const value: unknown = JSON.parse(rememberedValue(name) ?? '[]')
    return Array.isArray(value) ? value.filter(isComment) : []
  } catch {
    return []
  }
}

/** Returns false for what another version of this file has written. */
function isComment(value: unknown): value is LineComment {
  if (typeof value !== 'object' || value === null) return false
  const { path, side, number, text, base, comment } = value as Partial<Record<keyof LineComment, unknown>>
  return (
    [path, text, base, comment].every((one) => typeof one === 'string') &&
    (side === 'old' || side === 'new') &&
    typeof number === 'number'
  )
}
