/** Writes a value of each conversation often, one write at a time, and always the newest. */

export class LatestWrites {
  readonly #write: (id: string, value: object) => Promise<void>
  readonly #newest = new Map<string, object>()
  readonly #writing = new Map<string, Promise<void>>()

  constructor(write: (id: string, value: object) => Promise<void>) {
    this.#write = write
  }

  /** Writes only the newest value of several concurrent calls; all of their promises settle with it. */
  write(id: string, value: object): Promise<void> {
    const waiting = this.#newest.has(id)
    this.#newest.set(id, value)
    // oxlint-disable-next-line typescript/no-non-null-assertion -- set together with #newest
    if (waiting) return this.#writing.get(id)!
    const writing = this.written(id).then(() => {
      // oxlint-disable-next-line typescript/no-non-null-assertion -- set above, and removed by this write only
      const latest = this.#newest.get(id)!
      this.#newest.delete(id)
      return this.#write(id, latest)
    })
    const settling = writing.finally(() => this.#writing.get(id) === settling && this.#writing.delete(id))
    this.#writing.set(id, settling)
    return settling
  }

  /** Resolves when the current write of this conversation has succeeded or failed. */
  async written(id: string): Promise<void> {
    await this.#writing.get(id)?.catch(() => {}) // reported to the caller that writes
  }

  /** Resolves when no write is in progress. */
  async settled(): Promise<void> {
    while (this.#writing.size > 0) await Promise.allSettled(this.#writing.values())
  }
}
