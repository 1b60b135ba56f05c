/** Reads a list again after it has changed: any number of changes cost one reading at a time. */
import { setTimeout as delay } from 'node:timers/promises'

/** The pause between two readings of a list that changes all the time, in milliseconds. */
const PAUSE_MS = 1000

export class ListRefresh {
  readonly #read: () => Promise<void>
  #isStale = false
  #isReading = false

  /** What `read` rejects with is ignored: the former list is kept. */
  constructor(read: () => Promise<void>) {
    this.#read = read
  }

  change(): void {
    this.#isStale = true
    if (this.#isReading) return
    this.#isReading = true
    void this.#work().finally(() => (this.#isReading = false))
  }

  async #work(): Promise<void> {
    while (this.#isStale) {
      this.#isStale = false
      await this.#read().catch(() => {}) // if the connection has ended, the next one reads it
      await delay(PAUSE_MS, undefined, { ref: false })
    }
  }
}
