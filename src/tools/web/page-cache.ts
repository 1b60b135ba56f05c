/** Pages of the web that a conversation has fetched lately, in bounded memory. */

/** How long a page is kept, milliseconds. */
const KEPT_MS = 15 * 60_000

const MAX_PAGES = 20

/** Characters of all pages together. */
const MAX_CHARS = 2_000_000

export type CachedPage = { readonly address: string; readonly text: string; readonly isCut: boolean }

export class PageCache {
  readonly #now: () => number
  /** The latest last. */
  readonly #pages = new Map<string, { readonly page: CachedPage; readonly until: number }>()

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  get(url: string): CachedPage | undefined {
    const cachedPage = this.#pages.get(url)
    return cachedPage && cachedPage.until > this.#now() ? cachedPage.page : undefined
  }

  set(url: string, page: CachedPage): void {
    this.#pages.delete(url)
    this.#pages.set(url, { page, until: this.#now() + KEPT_MS })
    let chars = this.#pages.values().reduce((sum, { page: each }) => sum + each.text.length, 0)
    for (const [oldest, { page: each, until }] of this.#pages) {
      if (this.#pages.size <= MAX_PAGES && chars <= MAX_CHARS && until > this.#now()) return
      this.#pages.delete(oldest)
      chars -= each.text.length
    }
  }
}
