/** Finds the files of a conversation that complete a word. */
import type { ConversationHandle } from '../../../client/conversation/conversation-handle.ts'

const FOUND_FILES = 20
/** A search goes through the whole workdir if nothing has the name. */
const MAX_SEARCH_MS = 2000
/** How long a search without a result is remembered, in milliseconds. The same name with more letters is not searched for then. */
const KNOWN_MS = 5000

export class FileCompletion {
  /** A part of a name that no file has. */
  #unknown: { readonly id: string; readonly part: string; readonly until: number } | undefined

  /** Paths of the workdir; directories end in `/`. */
  async find({ id, files }: ConversationHandle, part: string, signal: AbortSignal): Promise<readonly string[]> {
    if (part === '' || part.endsWith('/')) {
      const { items } = await files.list({ path: part, limit: FOUND_FILES }, { signal })
      return items.map(nameOf)
    }
    if (this.#isUnknown(id, part)) return []
    const limit = AbortSignal.timeout(MAX_SEARCH_MS)
    const q = part.includes('/') ? `${part}*` : part
    try {
      const found = await files.search({ q, limit: FOUND_FILES }, { signal: AbortSignal.any([signal, limit]) })
      if (found.items.length === 0) this.#unknown = { id, part, until: performance.now() + KNOWN_MS }
      return found.items.map(nameOf)
    } catch (error) {
      if (limit.aborted) this.#unknown = { id, part, until: performance.now() + KNOWN_MS }
      throw error
    }
  }

  /** True if the name extends one that no file has. Not for a name with a slash or a pattern, which can match other files. */
  #isUnknown(id: string, part: string): boolean {
    if (!this.#unknown || performance.now() > this.#unknown.until || /[*?[/]/.test(part)) return false
    return this.#unknown.id === id && part.startsWith(this.#unknown.part)
  }
}

const nameOf = ({ path, type }: { path: string; type: string }): string => (type === 'directory' ? `${path}/` : path)
