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

export type ConversationItem = { readonly id: string; readonly type?: string; readonly [field: string]: unknown }

type PageQuery = { readonly after?: string | undefined; readonly limit: number; readonly order: 'asc' | 'desc' }
type ItemPage = { readonly items: readonly ConversationItem[]; readonly hasMore: boolean }

/** A page of large items is short. */
const MAX_CHARS = 4 * 1024 * 1024
const PAGE = { limit: 256, maxBytes: 1024 * 1024 }

export async function findItem(
  conversation: Conversation,
  isMeant: (item: ConversationItem) => boolean,
): Promise<ConversationItem | undefined> {
  for await (const item of itemsIn(conversation)) if (isMeant(item)) return item
  return undefined
}

/** Throws an `OpenAiError` if no item has the id `after`. */
export async function pageOfItems(conversation: Conversation, { after, limit, order }: PageQuery): Promise<ItemPage> {
  const window = new PageWindow(limit, order)
  let isReached = order === 'asc' && after === undefined
  for await (const item of itemsIn(conversation)) {
    if (order === 'desc') {
      isReached = item.id === after
      if (isReached) break
      window.add(item)
    } else if (isReached) {
      window.add(item)
      if (window.isFull) break
    } else isReached = item.id === after
  }
  if (after !== undefined && !isReached) throw invalid('after', 'is not an item of this conversation')
  return window.page()
}

/** The first items, or the last ones, as many as fit in a page, and whether there are more. */
class PageWindow {
  readonly #limit: number
  readonly #order: PageQuery['order']
  readonly #items: { readonly item: ConversationItem; readonly chars: number }[] = []
  #chars = 0
  #hasMore = false

  constructor(limit: number, order: PageQuery['order']) {
    this.#limit = limit
    this.#order = order
  }

  /** True when a further item would not be on the page, and one was not. */
  get isFull(): boolean {
    return this.#hasMore
  }

  add(item: ConversationItem): void {
    const chars = JSON.stringify(item).length
    this.#items.push({ item, chars })
    this.#chars += chars
    while (this.#items.length > 1 && (this.#items.length > this.#limit || this.#chars > MAX_CHARS)) {
      const removedItem = this.#order === 'asc' ? this.#items.pop() : this.#items.shift()
      this.#chars -= removedItem?.chars ?? 0
      this.#hasMore = true
    }
  }

  page(): ItemPage {
    const items = this.#items.map(({ item }) => item)
    return { items: this.#order === 'asc' ? items : items.toReversed(), hasMore: this.#hasMore }
  }
}

/** What was taken back is not there. */
async function* itemsIn(conversation: Conversation): AsyncGenerator<ConversationItem, void, void> {
  const { log, state } = conversation
  const withdrawn = await withdrawnIn(conversation)
  let outputs = new OutputItems()
  for await (const { events } of readPages(log, PAGE))
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

const WITHDRAWN: ReadonlySet<string> = new Set(['MessageWithdrawn'])

async function withdrawnIn({ log }: Conversation): Promise<ReadonlySet<number>> {
  const withdrawn = new Set<number>()
  for await (const { events } of readPages(log, { types: WITHDRAWN, ...PAGE }))
    for (const { event } of events) if (event.type === 'MessageWithdrawn') withdrawn.add(event.message_seq)
  return withdrawn
}
