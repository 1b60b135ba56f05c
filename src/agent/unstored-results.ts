/**
 * The results of calls that ran and whose result is not stored yet. A call must not run a second time, so only the write
 * is retried: by the next run that reaches the call, and with backoff.
 */
import { Retrier } from '../storage/retrier.ts'

export type UnstoredResultsDeps<Call> = {
  /** Stores the kept result of this call. */
  readonly store: (call: Call) => Promise<unknown>
  /** Calls the listener when nothing can be stored any more. Returns an unsubscribe function. */
  readonly onLogClosed: (listener: () => void) => () => void
}

export class UnstoredResults<Call extends { readonly toolUseId: string }, Ended> {
  readonly #deps: UnstoredResultsDeps<Call>
  readonly #results = new Map<string, Ended>()
  /** The calls whose write has failed. */
  readonly #failed = new Map<string, Call>()
  /** Exists while writes are retried. */
  #retrying: { readonly retrier: Retrier; readonly unsubscribe: () => void } | undefined

  constructor(deps: UnstoredResultsDeps<Call>) {
    this.#deps = deps
  }

  has(toolUseId: string): boolean {
    return this.#results.has(toolUseId)
  }

  get(toolUseId: string): Ended | undefined {
    return this.#results.get(toolUseId)
  }

  keep(toolUseId: string, result: Ended): void {
    this.#results.set(toolUseId, result)
  }

  /** Call it when the result is stored. */
  forget(toolUseId: string): void {
    this.#results.delete(toolUseId)
    this.#failed.delete(toolUseId)
    if (this.#failed.size > 0) return
    this.#retrying?.retrier.stop()
    this.#retrying?.unsubscribe()
    this.#retrying = undefined
  }

  /** Call it when the write of this result has failed. */
  tryLater(call: Call): void {
    this.#failed.set(call.toolUseId, call)
    this.#retrying ??= this.#begin()
    this.#retrying.retrier.later()
  }

  /** Stores what could not be stored before, in the order in which it failed. Rejects if it still cannot be stored. */
  async storeAll(): Promise<void> {
    for (const call of this.#failed.values()) await this.#deps.store(call)
  }

  #begin(): { readonly retrier: Retrier; readonly unsubscribe: () => void } {
    const retrier = new Retrier(() => this.storeAll())
    return { retrier, unsubscribe: this.#deps.onLogClosed(() => retrier.stop()) }
  }
}
