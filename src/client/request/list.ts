/** A list that has pages: `await` returns one page, `for await` all items. Requests nothing before that. */

/** A page as the server returns it. */
export type Page<Item> = { readonly items: readonly Item[]; readonly next_page_id?: string | null }

/** Fetches a page; without an id the first one. */
type FetchPage<P> = (pageId: string | undefined) => Promise<P>

export const listOf = <P extends Page<unknown>>(fetchPage: FetchPage<P>) => new List<P['items'][number], P>(fetchPage)

export class List<Item, P extends Page<Item> = Page<Item>> implements AsyncIterable<Item>, PromiseLike<P> {
  readonly #fetchPage: FetchPage<P>

  constructor(fetchPage: FetchPage<P>) {
    this.#fetchPage = fetchPage
  }

  /** All items, page by page. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Item> {
    for await (const { items } of this.pages()) yield* items
  }

  async *pages(): AsyncGenerator<P> {
    let pageId: string | undefined
    do {
      const page = await this.#fetchPage(pageId)
      yield page
      pageId = page.next_page_id ?? undefined
    } while (pageId !== undefined)
  }

  /** All items in one array. */
  async all(): Promise<Item[]> {
    const all: Item[] = []
    for await (const { items } of this.pages()) all.push(...items)
    return all
  }

  /** Makes `await list` return the first page. */
  // oxlint-disable-next-line unicorn/no-thenable -- what most clients of APIs do, and what people expect
  then<A = P, B = never>(
    onPage?: ((page: P) => A | PromiseLike<A>) | null,
    onError?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#fetchPage(undefined).then(onPage, onError)
  }
}
