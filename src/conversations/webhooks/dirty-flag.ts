/** The dirty flag of one conversation's deliveries: set durably before events may wait for delivery, so that a start of the server knows without looking. */
import { Problem } from '../../contract/problem.ts'
import { Queue } from '../../lib/queue.ts'
import { isOutOfRoom } from '../../lib/error-code.ts'

export type FlagStorage = { readonly set: () => Promise<void>; readonly clear: () => Promise<void> }

export class DirtyFlag {
  readonly #storage: FlagStorage
  #isSet = false
  #raising: Promise<void> | undefined
  #underWay = 0
  readonly #turns = new Queue({ limit: 1 })
  #callbacks: { readonly hasEnabled: boolean } = { hasEnabled: false }

  /** `set` and `clear` are never called at the same time. */
  constructor(storage: FlagStorage) {
    this.#storage = storage
  }

  /** From now on `guard` sets the flag while one of these callbacks is enabled. */
  guardFor(callbacks: { readonly hasEnabled: boolean }): void {
    this.#callbacks = callbacks
  }

  /** Around each append. */
  guard<T>(append: () => Promise<T>): Promise<T> {
    return this.during(append, this.#callbacks.hasEnabled)
  }

  /**
   * Returns undefined when the flag is set, durably. Else all callers get the same promise and go on in the order they
   * came; it rejects with the `Problem`s of an append.
   */
  raise(): Promise<void> | undefined {
    if (this.#isSet || this.#raising) return this.#raising
    this.#raising = this.#turns.run(() => this.#storage.set().catch(refuse))
    const settle = (hasWorked: boolean) => () => {
      this.#isSet = hasWorked
      this.#raising = undefined
    }
    // The first to learn of it. Until then all wait for the promise, so nobody comes before those who do.
    this.#raising.then(settle(true), settle(false))
    return this.#raising
  }

  /** Around what may leave something to deliver: begins once the flag is set, if it is needed, at once if it is set already. */
  during<T>(work: () => Promise<T>, isNeeded: boolean): Promise<T> {
    this.#underWay++
    const ready = isNeeded ? this.raise() : undefined
    return (ready ? ready.then(work) : work()).finally(() => this.#underWay--)
  }

  /** For when nothing waits. Does nothing while something is under way that may change that. */
  async lower(): Promise<void> {
    if (this.#raising || this.#underWay > 0) return
    this.#isSet = false
    await this.#turns.run(() => this.#storage.clear())
  }
}

/** Without the flag what follows could be forgotten, so it is refused, as it most likely would be anyway. */
function refuse(cause: unknown): never {
  const code = isOutOfRoom(cause) ? 'storage_full' : 'storage_failed'
  throw new Problem(code, 'There is something to deliver to callbacks, and that could not be noted on the disk.', {
    cause,
  })
}
