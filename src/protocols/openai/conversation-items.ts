/** The items of a conversation, in the order of the log, with the ids that they have in responses. */
import type { Event } from '../../contract/events/event.ts'
import { holds } from '../../contract/events/rewound.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import { readPages } from '../../events/read-pages.ts'
import type { TurnChange } from '../items/turn-changes.ts'
import { TurnChanges } from '../items/turn-changes.ts'
import { itemsOfInput } from './input-items.ts'
import { ResponseBuilder } from './response-builder.ts'
import { invalid } from '../shared/fields.ts'
import { beginningBefore, placeOfItem } from './item-places.ts'
import { withdrawnIn } from '../shared/user-messages.ts'

export type ConversationItem = { readonly id: string; readonly type?: string; readonly [field: string]: unknown }

type PageQuery = { readonly after?: string | undefined; readonly limit: number; readonly order: 'asc' | 'desc' }
type ItemPage = { readonly items: readonly ConversationItem[]; readonly hasMore: boolean }
type Items = AsyncGenerator<ConversationItem, void, void>

/** A page of large items is short. */
const MAX_CHARS = 4 * 1024 * 1024
const PAGE = { limit: 256, maxBytes: 1024 * 1024 }

export async function findItem(conversation: Conversation, id: string): Promise<ConversationItem | undefined> {
  const seq = await placeOfItem(conversation, id)
  if (seq === undefined) return undefined
  for await (const item of itemsIn(conversation, { afterSeq: await beginningBefore(conversation, seq) }))
    if (item.id === id) return item
  return undefined
}

/** Reads the turns of the page, and those alone. Throws an `OpenAiError` if no item has the id `after`. */
export async function pageOfItems(conversation: Conversation, { after, limit, order }: PageQuery): Promise<ItemPage> {
  const seq = after === undefined ? undefined : await placeOfItem(conversation, after)
  if (after !== undefined && seq === undefined) throw notAnItem()
  const place = after === undefined || seq === undefined ? undefined : { id: after, seq }
  const foundItems = order === 'asc' ? oldestFirst(conversation, place) : newestFirst(conversation, place, limit)
  const items: ConversationItem[] = []
  let room = MAX_CHARS
  for await (const item of foundItems) {
    room -= JSON.stringify(item).length
    if (items.length > 0 && (items.length === limit || room < 0)) return { items, hasMore: true }
    items.push(item)
  }
  return { items, hasMore: false }
}

/** `seq`: its item is of this event, or a later one. */
type ItemPlace = { readonly id: string; readonly seq: number }

async function* oldestFirst(conversation: Conversation, place: ItemPlace | undefined): Items {
  const afterSeq = place ? await beginningBefore(conversation, place.seq) : 0
  let isReached = place === undefined
  for await (const item of itemsIn(conversation, { afterSeq })) {
    if (isReached) yield item
    else isReached = item.id === place?.id
  }
  if (!isReached) throw notAnItem()
}

async function* newestFirst(conversation: Conversation, place: ItemPlace | undefined, limit: number): Items {
  let beforeSeq = conversation.log.head + 1
  let endSeq = beforeSeq
  for (let until = place; ; until = undefined) {
    const afterSeq = await beginningBefore(conversation, until?.seq ?? endSeq)
    const newest = new NewestItems(limit)
    let isReached = until === undefined
    for await (const item of itemsIn(conversation, { afterSeq, beforeSeq })) {
      isReached ||= item.id === until?.id
      if (until && isReached) break
      newest.add(item)
    }
    if (!isReached) throw notAnItem()
    yield* newest.items.toReversed()
    if (afterSeq === 0) return
    endSeq = afterSeq
    beforeSeq = endSeq + 1
  }
}

/** The newest of a turn, and one more than a page has. */
class NewestItems {
  readonly items: ConversationItem[] = []
  readonly #limit: number
  readonly #sizes: number[] = []
  #chars = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  add(item: ConversationItem): void {
    const size = JSON.stringify(item).length
    this.items.push(item)
    this.#sizes.push(size)
    this.#chars += size
    while (
      this.items.length > 2 &&
      (this.items.length > this.#limit + 1 || this.#chars - this.#oldestSize > MAX_CHARS)
    ) {
      this.#chars -= this.#oldestSize
      this.items.shift()
      this.#sizes.shift()
    }
  }

  get #oldestSize(): number {
    return this.#sizes[0] ?? 0
  }
}

const notAnItem = () => invalid('after', 'is not an item of this conversation')

type LogRange = { readonly afterSeq: number; readonly beforeSeq?: number }

/** Yields those from the beginning of a turn on, without what was taken back. */
async function* itemsIn(conversation: Conversation, range: LogRange): Items {
  const { log, state } = conversation
  const withdrawn = await withdrawnIn(conversation, range.afterSeq)
  let outputs = new OutputItems()
  for await (const { events } of readPages(log, { ...range, ...PAGE }))
    for (const { event, seq } of events) {
      if (event.type === 'Rewound') outputs = new OutputItems()
      if (withdrawn.has(seq) || !holds(state.rewound, event)) continue
      yield* outputs.after(event)
      if (!('parent_tool_use_id' in event) || event.parent_tool_use_id === undefined) yield* itemsOfInput(event)
    }
}

/** What the agent does, as the output of the responses that it is. */
class OutputItems {
  readonly #changes = new TurnChanges()
  #builder = newBuilder()
  /** What a later response of the same turn knows of it. */
  #requests: TurnChange[] = []

  after(event: Event): ConversationItem[] {
    return this.#changes.add(event).flatMap((change) => {
      this.#builder.add(change)
      const items = this.#builder.output.splice(0).map(asItem)
      if (change.type === 'asked') this.#requests.push(change)
      if (change.type === 'ended') this.#requests = []
      if (change.type === 'ended' || change.type === 'rests') {
        this.#builder = newBuilder()
        for (const request of this.#requests) this.#builder.recall(request)
      }
      return items
    })
  }
}

const newBuilder = () => new ResponseBuilder({ asksApproval: true, isStructured: false })

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the builder gives an id to each of its items
const asItem = (item: object): ConversationItem => item as ConversationItem
