/** Tracks in memory which conversations are in use and when each was last used. */

type Use = {
  holders: number
  /** A time of the monotonic clock, in milliseconds. */
  lastAt: number
  /** Incremented by every use. */
  count: number
}

export class Uses {
  /** The least recent first, except those that are held. */
  readonly #uses = new Map<string, Use>()
  #held = 0
  readonly #isOpen: (id: string) => boolean

  /** Forgets a conversation for which `isOpen` is false as soon as nothing holds it. */
  constructor(isOpen: (id: string) => boolean) {
    this.#isOpen = isOpen
  }

  /** Keeps a conversation in use until the returned function is called. That function is idempotent. */
  hold(id: string): () => void {
    const use = this.note(id)
    if (use.holders++ === 0) this.#held++
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      this.note(id)
      if (--use.holders > 0) return
      this.#held--
      if (!this.#isOpen(id)) this.#uses.delete(id)
    }
  }

  /** The number of conversations that nothing holds. Some may be closed already. */
  get unused(): number {
    return this.#uses.size - this.#held
  }

  /** Returns as many open conversations that nothing holds as are wanted, the least recently used first. */
  leastRecent(count: number): string[] {
    const foundIds: string[] = []
    for (const [id, { holders }] of this.#uses) {
      if (foundIds.length >= count) break
      if (holders > 0) continue
      if (this.#isOpen(id)) foundIds.push(id)
      else this.#uses.delete(id)
    }
    return foundIds
  }

  /** Makes it the last of `leastRecent`, though it was not used. */
  postpone(id: string): void {
    const use = this.#uses.get(id)
    if (!use) return
    this.#uses.delete(id)
    if (use.holders > 0 || this.#isOpen(id)) this.#uses.set(id, use)
  }

  /**
   * Returns the milliseconds since its last use; 0 while it is held. A conversation without any use becomes idle now.
   */
  idleMs(id: string): number {
    const use = this.#uses.get(id) ?? this.note(id)
    return use.holders > 0 ? 0 : performance.now() - use.lastAt
  }

  /** Returns a function that returns true if the conversation was not used since. */
  watch(id: string): () => boolean {
    const { count } = this.#uses.get(id) ?? this.note(id)
    return () => {
      const now = this.#uses.get(id)
      return now !== undefined && now.holders === 0 && now.count === count
    }
  }

  /** Forgets the conversations that are not open any more. */
  forgetClosed(): void {
    for (const [id, { holders }] of this.#uses) if (holders === 0 && !this.#isOpen(id)) this.#uses.delete(id)
  }

  /** Records a use now. */
  note(id: string): Use {
    const use = this.#uses.get(id) ?? { holders: 0, lastAt: 0, count: 0 }
    use.lastAt = performance.now()
    use.count++
    this.#uses.delete(id)
    this.#uses.set(id, use)
    return use
  }
}
