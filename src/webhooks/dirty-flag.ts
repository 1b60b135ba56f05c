/**
 * The dirty flag of one conversation's deliveries: set durably before an event may become pending, so that the next
 * start of the server finds pending deliveries without searching.
 */
import { Problem } from '../contract/problem.ts'
import { Queue } from '../lib/queue.ts'
import { isOutOfRoom } from '../lib/error-code.ts'

export type FlagStorage = { readonly set: () => Promise<void>; readonly clear: () => Promise<void> }

export class DirtyFlag {
  readonly #storage: FlagStorage
  #isSet = false
  #raising: Promise<void> | undefined
  #running = 0
  readonly #queue = new Queue({ limit: 1 })
  #callbacks: { readonly hasEnabled: boolean } = { hasEnabled: false }

  /** `set` and `clear` are never called at the same time. */
  constructor(storage: FlagStorage) {
    this.#storage = storage
  }

  /** Makes `guard` set the flag from now on while one of these callbacks is enabled. */
  guardFor(callbacks: { readonly hasEnabled: boolean }): void {
    this.#callbacks = callbacks
  }

  /** Wraps each append. */
  guard<T>(append: () => Promise<T>): Promise<T> {
    return this.during(append, this.#callbacks.hasEnabled)
  }

  /**
   * Returns undefined if the flag is durably set. Otherwise all callers get the same promise and continue in order; it
   * rejects with the `Problem`s of an append.
   */
  raise(): Promise<void> | undefined {
    if (this.#isSet || this.#raising) return this.#raising
    this.#raising = this.#queue.run(() => this.#storage.set().catch(refuse))
    const settle = (hasWorked: boolean) => () => {
      this.#isSet = hasWorked
      this.#raising = undefined
    }
    // The first continuation of the promise. Until it runs, all callers wait for the promise, so none overtakes those
    // who wait.
    this.#raising.then(settle(true), settle(false))
    return this.#raising
  }

  /**
   * Wraps work that may leave something to deliver: runs it after the flag is set, if needed, and immediately if it is
   * already set.
   */
  during<T>(work: () => Promise<T>, isNeeded: boolean): Promise<T> {
    this.#running++
    const ready = isNeeded ? this.raise() : undefined
    return (ready ? ready.then(work) : work()).finally(() => this.#running--)
  }

  /** Clears the flag. Returns false, and changes nothing, while work is in progress that may leave something to deliver. */
  async lower(): Promise<boolean> {
    if (this.#raising || this.#running > 0) return false
    this.#isSet = false
    await this.#queue.run(() => this.#storage.clear())
    return true
  }
}

/** Refuses the append: without the flag the deliveries could be forgotten. It would most likely fail anyway. */
function refuse(cause: unknown): never {
  if (cause instanceof Problem && cause.code === 'storage_unavailable') throw cause
  const code = isOutOfRoom(cause) ? 'storage_full' : 'storage_failed'
  throw new Problem(code, 'The pending webhook deliveries could not be recorded on disk.', {
    cause,
  })
}
