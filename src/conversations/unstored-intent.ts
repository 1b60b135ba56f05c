/**
 * The intent of one conversation that could not be stored: kept and retried with backoff. It is stored before all
 * others.
 */
import { Retrier } from '../storage/retrier.ts'
import type { Intent } from '../state/intents.ts'

export class UnstoredIntent {
  readonly #retrier: Retrier
  readonly #watchers = new Set<() => void>()
  #intent: Intent | undefined

  /** `tryAgain` stores what is kept, in turn. */
  constructor(tryAgain: () => Promise<unknown>) {
    this.#retrier = new Retrier(tryAgain)
  }

  get intent(): Intent | undefined {
    return this.#intent
  }

  keep(intent: Intent): void {
    this.#intent = intent
    this.tryLater()
    for (const onKept of this.#watchers) onKept()
  }

  /** Forgets what is kept when it is stored. */
  async forgetAfter(storing: Promise<unknown>): Promise<void> {
    await storing
    this.#intent = undefined
  }

  /** Schedules a retry, also for other writes that failed. */
  tryLater(): void {
    this.#retrier.later()
  }

  stop(): void {
    this.#retrier.stop()
  }

  /** Calls `onKept` whenever an intent is kept. Returns an unsubscribe function. */
  watch(onKept: () => void): () => void {
    this.#watchers.add(onKept)
    return () => this.#watchers.delete(onKept)
  }
}
