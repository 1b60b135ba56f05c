/**
 * Knows which subagents work for a run and which wait for decisions. When nobody works any more, those that wait are
 * released, so that the run ends and waits as well.
 */
export type Worker = { readonly toolUseId: string; readonly callerId: string | undefined; isWaiting: boolean }

type Waiter = {
  readonly worker: Worker
  readonly isBlocked: () => boolean
  readonly release: (continues: boolean) => void
}

export class DecisionWaits {
  readonly #workers = new Set<Worker>()
  readonly #waiters = new Set<Waiter>()

  /** Returns the worker, and a function that removes it. */
  add(of: Omit<Worker, 'isWaiting'>): { readonly worker: Worker; readonly leave: () => void } {
    const worker = { ...of, isWaiting: false }
    this.#workers.add(worker)
    const leave = () => {
      this.#workers.delete(worker)
      this.#releaseIfNobodyWorks()
    }
    return { worker, leave }
  }

  /** Resolves to true when it is not blocked any more; to false when the signal is aborted, or nobody works. */
  async until(worker: Worker, isBlocked: () => boolean, signal: AbortSignal): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const waiter = { worker, isBlocked, release: resolve }
    const giveUp = () => resolve(false)
    signal.addEventListener('abort', giveUp, { once: true })
    if (signal.aborted) giveUp()
    this.#waiters.add(waiter)
    worker.isWaiting = true
    this.#releaseIfNobodyWorks()
    try {
      return await promise
    } finally {
      worker.isWaiting = false
      this.#waiters.delete(waiter)
      signal.removeEventListener('abort', giveUp)
    }
  }

  /** Call it after each change of the state. */
  check(): void {
    for (const { isBlocked, release } of this.#waiters) if (!isBlocked()) release(true)
  }

  #releaseIfNobodyWorks(): void {
    const workers = [...this.#workers]
    const hasOwn = ({ toolUseId }: Worker) => workers.some(({ callerId }) => callerId === toolUseId)
    if (workers.some((worker) => !worker.isWaiting && !hasOwn(worker))) return
    for (const { release } of this.#waiters) release(false)
  }
}
