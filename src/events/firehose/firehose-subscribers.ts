/** The live readers of the firehose: queues what must be published to them, in order. */
import type { LogSubscriber } from '../event-log.ts'
import type { StoredEvent } from '../event-store.ts'
import type { FirehoseOrder } from './firehose-order.ts'
import type { TransientRecord } from '../transient-record.ts'
import type { Notice } from './firehose-record.ts'
import type { Gap, EventPlace, Waiting } from './firehose-waiting.ts'
import { keyOf, runsOf } from './firehose-waiting.ts'

type Subscription = LogSubscriber & {
  /** The subscriber already knows earlier transient records: they came with `messagesSoFar`. */
  readonly from: number
}

type ShownItem = {
  readonly order: FirehoseOrder
  readonly positions: Gap
  readonly pagesOf: (gap: Gap) => AsyncIterable<readonly StoredEvent[]>
}

/** Places read at a time. */
const PAGE = 10_000

export class FirehoseSubscribers {
  readonly #subscriptions = new Set<Subscription>()
  /** The list is in order; events wait for their positions, and transient records wait for the events before them. */
  #waiting: Waiting[] = []
  /** Number of items published so far. */
  #shown = 0

  get count(): number {
    return this.#subscriptions.size
  }

  get waitingCount(): number {
    return this.#waiting.length
  }

  /** Returns an unsubscribe function. */
  add(subscriber: LogSubscriber): () => void {
    const subscription = { ...subscriber, from: this.#shown + this.#waiting.length }
    this.#subscriptions.add(subscription)
    return () => this.#subscriptions.delete(subscription)
  }

  /** Queues an item for the next `show`. */
  wait(waiting: Waiting): void {
    this.#waiting.push(waiting)
  }

  /** Publishes immediately. Call it only if nothing is queued. */
  tellNow(record: TransientRecord | Notice): void {
    this.#tellPassing(record, this.#shown++)
  }

  /**
   * Publishes all events of these positions, with the first `count` queued items; later ones arrived while these were
   * being stored. Events that were not queued are read with `pagesOf`.
   */
  async show(count: number, { order, positions, pagesOf }: ShownItem): Promise<void> {
    const before = this.#shown
    this.#shown += count
    const waiting = this.#waiting.splice(0, count)
    const places = await placesOf(waiting, order, positions)
    for (const run of runsOf(waiting, places, order.epoch, positions)) {
      if (run.kind === 'events') this.#tellEvents(run.events)
      else if (run.kind === 'gap') for await (const page of pagesOf(run.gap)) this.#tellEvents(page)
      else this.#tellPassing(run.record, before + run.at)
    }
  }

  dropWaiting(): void {
    this.#shown += this.#waiting.length
    this.#waiting = []
  }

  endAll(why: 'closing' | 'lagged'): void {
    const subscriptions = Array.from(this.#subscriptions)
    this.#subscriptions.clear()
    for (const subscription of subscriptions) subscription.onClose?.(why)
  }

  #tellEvents(events: readonly StoredEvent[]): void {
    for (const subscription of Array.from(this.#subscriptions)) subscription.onEvents?.(events)
  }

  #tellPassing(record: TransientRecord | Notice, at: number): void {
    for (const subscription of Array.from(this.#subscriptions)) {
      if (at < subscription.from) continue
      if (record.type === 'conversation_deleted') subscription.onNotice?.(record)
      else subscription.onTransient?.(record)
    }
  }
}

/** Returns the places of what waits by `keyOf`, of those between these positions. */
async function placesOf(
  waiting: readonly Waiting[],
  order: FirehoseOrder,
  { after, to }: Gap,
): Promise<Map<string, EventPlace>> {
  const wantedKeys = new Set(waiting.flatMap((one) => (one.kind === 'passing' ? [] : [keyOf(one.of)])))
  const places = new Map<string, EventPlace>()
  let previous = after
  for (let from = after; wantedKeys.size > 0 && from < to;) {
    const page = await order.read(from, Math.min(PAGE, to - from))
    for (const orderedEvent of page) {
      const { position } = orderedEvent
      if (wantedKeys.delete(keyOf(orderedEvent))) places.set(keyOf(orderedEvent), { position, previous })
      previous = position
    }
    from = page.at(-1)?.position ?? to
  }
  return places
}
