/** Who uses which conversation now, and when each was last used. In memory. */

type Use = {
  holders: number
  /** Of the monotonic clock, milliseconds. */
  lastAt: number
  /** Counts every use. */
  count: number
}

export class Uses {
  readonly #uses = new Map<string, Use>()
  readonly #isOpen: (id: string) => boolean

  /** Of those for which `isOpen` does not hold, nothing is kept once nobody holds them. */
  constructor(isOpen: (id: string) => boolean) {
    this.#isOpen = isOpen
  }

  /** Keeps a conversation in use until the returned function is called; calling that twice is fine. */
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

  /** It is used at this moment. */
  note(id: string): void {
    this.#note(id)
  }

  /** Milliseconds since its last use; 0 while it is held. One that was never used begins to be idle now. */
  idleMs(id: string): number {
    const use = this.#uses.get(id) ?? this.#note(id)
    return use.holders > 0 ? 0 : performance.now() - use.lastAt
  }

  /** Returns a function that tells whether it was not used since. */
  watch(id: string): () => boolean {
    const { count } = this.#uses.get(id) ?? this.#note(id)
    return () => {
      const now = this.#uses.get(id)
      return now !== undefined && now.holders === 0 && now.count === count
    }
  }

  /** Forgets those that are not open any more. */
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
