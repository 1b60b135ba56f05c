/** Tracks in memory which conversations are in use and when each was last used. */

type Use = {
  holders: number
  /** On the monotonic clock, in milliseconds. */
  lastAt: number
  /** Incremented by every use. */
  count: number
}

export class Uses {
  readonly #uses = new Map<string, Use>()
  readonly #isOpen: (id: string) => boolean

  /** Forgets a conversation for which `isOpen` is false as soon as nothing holds it. */
  constructor(isOpen: (id: string) => boolean) {
    this.#isOpen = isOpen
  }

  /** Keeps a conversation in use until the returned function is called. That function is idempotent. */
  hold(id: string): () => void {
    const use = this.#note(id)
    use.holders++
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      use.holders--
      use.lastAt = performance.now()
      use.count++
      if (use.holders === 0 && !this.#isOpen(id)) this.#uses.delete(id)
    }
  }

  /** Records a use now. */
  note(id: string): void {
    this.#note(id)
  }

  /**
   * Returns the milliseconds since its last use; 0 while it is held. A conversation without any use becomes idle now.
   */
  idleMs(id: string): number {
    const use = this.#uses.get(id) ?? this.#note(id)
    return use.holders > 0 ? 0 : performance.now() - use.lastAt
  }

  /** Returns a function that returns true if the conversation was not used since. */
  watch(id: string): () => boolean {
    const { count } = this.#uses.get(id) ?? this.#note(id)
    return () => {
      const now = this.#uses.get(id)
      return now !== undefined && now.holders === 0 && now.count === count
    }
  }

  /** Forgets the conversations that are not open any more. */
  forgetClosed(): void {
    for (const [id, { holders }] of this.#uses) if (holders === 0 && !this.#isOpen(id)) this.#uses.delete(id)
  }

  #note(id: string): Use {
    const use = this.#uses.get(id) ?? { holders: 0, lastAt: 0, count: 0 }
    use.lastAt = performance.now()
    use.count++
    this.#uses.set(id, use)
    return use
  }
}
