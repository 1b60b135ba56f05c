/**
 * The search over the events of all conversations. Before it answers, it indexes what has been stored since the last search:
 * nothing of it happens while agents work, or before the first search. Opens no conversation.
 */
import { Problem } from '../../contract/problem.ts'
import type { FoundEvent, FoundEvents, SearchEvents } from '../../contract/search.ts'
import type { LogViews } from '../../events/event-store.ts'
import { isUnreadable } from '../../lib/error-code.ts'
import { settlesWithin } from '../../lib/bounded-wait.ts'
import { mapBounded } from '../../lib/map-bounded.ts'
import { decodePageId, encodePageId } from '../../lib/page-id.ts'
import type { Slices } from '../../lib/time-slices.ts'
import { createSlices } from '../../lib/time-slices.ts'
import type { FoundPlace, IndexedPart, SearchIndex, PositionOfResult, WordQuery } from '../../storage/search-index.ts'
import type { Logger } from '../../telemetry/logger.ts'
import type { KnownConversations } from '../registry/known-conversations.ts'
import type { IsVisible } from '../registry/listing.ts'
import { SEARCHED_TYPES, searchedPage, searchedTexts } from './searched-texts.ts'
import { queriedWords, snippetOf } from './words.ts'

export type ConversationSearchDeps = {
  readonly registry: Pick<KnownConversations, 'all' | 'get' | 'upToDate'>
  /** Ids of conversations that are in no list. */
  readonly hidden: { readonly has: (id: string) => boolean }
  readonly index: SearchIndex
  readonly logs: LogViews
  readonly logger: Pick<Logger, 'warn'>
}

type SearchOptions = {
  readonly isVisible?: IsVisible | undefined
  /** Aborted when the client has left. */
  readonly signal?: AbortSignal | undefined
}

type FoundPlaces = { readonly places: readonly FoundPlace[]; readonly isComplete: boolean }

/** How long a search waits until all is indexed, in milliseconds. */
const WAIT_MS = 3000
/** Events of a log read at a time. */
const PAGE = 256
/** Bytes of words that are stored at a time. */
const BATCH_BYTES = 1024 * 1024
/** Logs read at a time for the snippets of a page. */
const SNIPPET_CONCURRENCY = 8

export class ConversationSearch implements AsyncDisposable {
  readonly #deps: ConversationSearchDeps
  readonly #closing = new AbortController()
  /** The seq up to which each conversation is indexed. Undefined: it must be read. */
  #heads: Map<string, number> | undefined
  #indexing: Promise<boolean> | undefined
  /** What begins after it, for the searches that came meanwhile. */
  #next: Promise<boolean> | undefined

  constructor(deps: ConversationSearchDeps) {
    this.#deps = deps
  }

  /** Throws a `Problem` for an invalid `page_id`. The signal ends it before the index is asked. */
  async page(query: SearchEvents, { isVisible, signal }: SearchOptions = {}): Promise<FoundEvents> {
    const after = query.page_id === undefined ? undefined : placeIn(query.page_id)
    const words = queriedWords(query.q)
    if (words.length === 0) return { items: [], next_page_id: null, is_complete: true }
    await this.#deps.registry.upToDate()
    const ids = isVisible && [...this.#listed()].filter((one) => isVisible(one)).map(({ id }) => id)
    const wantedPage = { words, limit: query.limit + 1, after, ids, signal }
    // A damaged index is removed when that is found out, and made again.
    const { places: foundPlaces, isComplete } = await this.#find(wantedPage).catch((error: unknown) => {
      if (signal?.aborted) throw error
      return this.#find(wantedPage)
    })
    const page = foundPlaces.slice(0, query.limit)
    const last = page.at(-1)?.place
    return {
      items: await this.#itemsOf(page, words),
      next_page_id:
        last && foundPlaces.length > page.length ? encodePageId([String(last.at), String(last.number)]) : null,
      is_complete: isComplete,
    }
  }

  async #find({ signal, ...query }: WordQuery & Pick<SearchOptions, 'signal'>): Promise<FoundPlaces> {
    const indexing = this.#indexed()
    const isComplete = (await settlesWithin(WAIT_MS, indexing)) && (await indexing)
    signal?.throwIfAborted()
    try {
      return { places: await this.#deps.index.find(query), isComplete }
    } catch (error) {
      this.#heads = undefined
      throw error
    }
  }

  /** Resolves to true if all that was stored before the call is indexed: by work that begins after it. */
  #indexed(): Promise<boolean> {
    if (this.#indexing) return (this.#next ??= this.#indexing.then(() => this.#index()))
    return this.#index()
  }

  #index(): Promise<boolean> {
    this.#next = undefined
    const indexing = this.#indexAll().finally(() => {
      if (this.#indexing === indexing) this.#indexing = undefined
    })
    return (this.#indexing = indexing)
  }

  /** Resolves when nothing is being indexed any more. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort()
    await this.#indexing
    await this.#next
  }

  *#listed() {
    const { registry, hidden } = this.#deps
    for (const summary of registry.all()) if (!hidden.has(summary.id)) yield summary
  }

  /** Makes a damaged or missing index again: what fails first is tried once more. Never rejects. */
  async #indexAll(isAgain = false): Promise<boolean> {
    try {
      return await this.#indexNew((this.#heads ??= new Map(await this.#deps.index.heads())))
    } catch (error) {
      this.#heads = undefined
      if (!isAgain && !this.#closing.signal.aborted) return await this.#indexAll(true)
      if (!this.#closing.signal.aborted) this.#deps.logger.warn({ err: error }, 'events could not be indexed')
      return false
    }
  }

  async #indexNew(heads: Map<string, number>): Promise<boolean> {
    const { index } = this.#deps
    const current = new Map(Array.from(this.#listed(), ({ id, lastSeq }) => [id, lastSeq]))
    // A log may have been restored from a backup.
    const goneIds = [...heads].filter(([id, head]) => head > (current.get(id) ?? 0)).map(([id]) => id)
    if (goneIds.length > 0) await index.forget(goneIds)
    for (const id of goneIds) heads.delete(id)
    const slices = createSlices()
    let batch: IndexedPart[] = []
    let bytes = 0
    const store = async () => {
      if (batch.length > 0) await index.add(batch)
      for (const { conversationId, through } of batch) heads.set(conversationId, through)
      batch = []
      bytes = 0
    }
    for (const [id, lastSeq] of current) {
      await slices.rest()
      const after = heads.get(id) ?? 0
      if (after >= lastSeq) continue
      for await (const part of this.#partsOf(id, after, slices)) {
        batch.push(part)
        bytes += part.events.reduce((sum, { words }) => sum + words.length, PART_BYTES)
        if (bytes > BATCH_BYTES) await store()
      }
      this.#closing.signal.throwIfAborted()
    }
    await store()
    return true
  }

  /** Ends early at what cannot be read: one damaged log must not stop the events of the others. */
  async *#partsOf(conversationId: string, head: number, slices: Slices): AsyncGenerator<IndexedPart> {
    try {
      await using view = await this.#deps.logs.view(conversationId)
      for (let after = head; after < view.head && !this.#closing.signal.aborted;) {
        const { events, scannedTo } = await view.read({ afterSeq: after, limit: PAGE, types: SEARCHED_TYPES })
        const through = scannedTo ?? view.head
        yield { conversationId, after, through, ...(await searchedPage(events, slices)) }
        after = through
      }
    } catch (error) {
      if (!(error instanceof Problem) && !isUnreadable(error)) throw error
    }
  }

  /** Leaves out what was deleted meanwhile. */
  async #itemsOf(foundPlaces: readonly FoundPlace[], words: readonly string[]): Promise<FoundEvent[]> {
    const items = new Map<FoundPlace, FoundEvent>()
    const byConversation = Map.groupBy(foundPlaces, ({ conversationId }) => conversationId)
    await mapBounded([...byConversation], SNIPPET_CONCURRENCY, async ([id, places]) => {
      const summary = this.#deps.registry.get(id)
      if (!summary || this.#deps.hidden.has(id)) return
      try {
        await using view = await this.#deps.logs.view(id)
        for (const place of places) {
          const { events } = await view.read({ afterSeq: place.seq - 1, beforeSeq: place.seq + 1, limit: 1 })
          const event = events[0]?.event
          const snippet = event && snippetOf(searchedTexts(event), words)
          if (snippet) items.set(place, itemOf(event, snippet, summary.title))
        }
      } catch (error) {
        if (!(error instanceof Problem) && !isUnreadable(error)) throw error
      }
    })
    return foundPlaces.flatMap((place) => items.get(place) ?? [])
  }
}

/** What a part without words takes. */
const PART_BYTES = 200

function itemOf(
  {
    id,
    conversation_id,
    seq,
    type,
    timestamp,
  }: Pick<FoundEvent, 'conversation_id' | 'seq' | 'type' | 'timestamp'> & {
    readonly id: string
  },
  { snippet, matches }: NonNullable<ReturnType<typeof snippetOf>>,
  title: string | undefined,
): FoundEvent {
  return {
    conversation_id,
    ...(title !== undefined && { title }),
    event_id: id,
    seq,
    type,
    timestamp,
    snippet,
    matches: [...matches],
  }
}

function placeIn(pageId: string): PositionOfResult {
  const [at, number] = (decodePageId(pageId) ?? []).map(Number)
  if (at !== undefined && number !== undefined && Number.isSafeInteger(at) && Number.isSafeInteger(number))
    return { at, number }
  throw new Problem(
    'invalid_cursor',
    'page_id was not issued by this server; leave it out to start from the first page.',
  )
}
