/** The readers that follow the firehose live: what waits to be shown to them, and in which order each is told. */
import type { LogSubscriber } from '../event-log.ts'
import type { StoredEvent } from '../event-store.ts'
import type { TransientRecord } from '../transient-record.ts'
import type { Notice } from './firehose-record.ts'
import type { Gap, Waiting } from './firehose-waiting.ts'
import { runsOf } from './firehose-waiting.ts'

type Subscription = LogSubscriber & {
  /** What passed before is known to it: it came with `messagesSoFar`. */
  readonly from: number
}

export class FirehoseSubscribers {
  readonly #subscriptions = new Set<Subscription>()
  /** In their order; events wait until they are in the index, and what passes waits for the events before it. */
  #waiting: Waiting[] = []
  /** How many have been shown, ever. */
  #shown = 0

  get count(): number {
    return this.#subscriptions.size
  }

  get waitingCount(): number {
    return this.#waiting.length
  }

  /** Returns how to stop. */
  add(subscriber: LogSubscriber): () => void {
    const subscription = { ...subscriber, from: this.#shown + this.#waiting.length }
    this.#subscriptions.add(subscription)
    return () => this.#subscriptions.delete(subscription)
  }

  /** To be shown with the next `show`, after all that waits already. */
  wait(one: Waiting): void {
    this.#waiting.push(one)
  }

  /** To be called only while nothing waits. */
  tellNow(record: TransientRecord | Notice): void {
    this.#tellPassing(record, this.#shown++)
  }

  /** The first so many of those that wait; those behind them came while these were stored. */
  async show(count: number, pagesOf: (gap: Gap) => AsyncIterable<readonly StoredEvent[]>): Promise<void> {
    const before = this.#shown
    this.#shown += count
    for (const { at, events, other } of runsOf(this.#waiting.splice(0, count))) {
      if (events) this.#tellEvents(events)
      else if ('to' in other) for await (const page of pagesOf(other)) this.#tellEvents(page)
      else this.#tellPassing(other, before + at)
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
    for (const subscription of Array.from(this.#subscriptions)) subscription.onEvents(events)
  }

  #tellPassing(record: TransientRecord | Notice, at: number): void {
    for (const subscription of Array.from(this.#subscriptions)) {
      if (at < subscription.from) continue
      if (record.type === 'conversation_deleted') subscription.onNotice?.(record)
      else subscription.onTransient?.(record)
    }
  }
}
