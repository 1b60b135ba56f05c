/**
 * Decides between a model request and the withdrawal of a message: a request is built only while no withdrawal is being
 * stored, and what it has cannot be withdrawn while it is being answered.
 */
export class SentMessages {
  readonly #head: () => number
  /** The last event that a model request of the active run contains; 0 if the run has made no request. */
  through = 0
  #withdrawing: Promise<unknown> | undefined

  /** `head`: the last event that a request would have. */
  constructor(head: () => number) {
    this.#head = head
  }

  get isWithdrawing(): boolean {
    return this.#withdrawing !== undefined
  }

  /** Resolves in the tick in which a request can be built. Rejects if it is not known whether a withdrawal was stored. */
  async settled(): Promise<void> {
    while (this.#withdrawing) await this.#withdrawing
  }

  /** Call it in the same tick in which a request is built, while none `isWithdrawing`. */
  mark(): void {
    this.through = this.#head()
  }

  /** Call it in the same tick in which the withdrawal was decided. `isLost`: whether it may be stored although it failed. */
  holdFor(storing: Promise<unknown>, isLost: () => boolean): void {
    const withdrawing: Promise<void> = storing.then(
      () => this.#release(withdrawing),
      (error: unknown) => {
        this.#release(withdrawing)
        if (isLost()) throw error
      },
    )
    withdrawing.catch(() => {}) // who sent the withdrawal gets the error
    this.#withdrawing = withdrawing
  }

  #release(withdrawing: Promise<unknown>): void {
    if (this.#withdrawing === withdrawing) this.#withdrawing = undefined
  }
}
