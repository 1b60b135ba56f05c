/**
 * A queue for work with limited concurrency. Within one key the order is first in, first out; waiting keys take turns.
 * Own code and not `p-queue`, which has no keys.
 */
import { Slots, type SlotLimits } from './slots.ts'

export type QueueOptions = {
  readonly key?: string
  /**
   * Aborted while the work waits: it leaves the queue immediately. Work that has begun must handle its signal itself.
   */
  readonly signal?: AbortSignal | undefined
}

/** A request of a caller that does other work while it waits; all others use `run`. */
export type SlotRequest = {
  /** True if a slot was free immediately. */
  readonly isFree: boolean
  /**
   * Resolves to true with the slot, to false if the signal is aborted or `leave` is called before that. Never rejects.
   */
  readonly entry: Promise<boolean>
  /** Idempotent. Must be called in the end, with or without a slot. */
  readonly leave: () => void
}

/** Admitted by the queue, with a slot that is already entered. */
type Waiter = { readonly enter: () => void }

export class Queue {
  readonly #slots: Slots
  /** Sets keep insertion order, and a waiter can leave from the middle. */
  readonly #waiting = new Map<string, Set<Waiter>>()

  constructor(limits: SlotLimits) {
    this.#slots = new Slots(limits)
  }

  get active(): number {
    return this.#slots.taken
  }

  get waiting(): number {
    return this.#waiting.values().reduce((sum, { size }) => sum + size, 0)
  }

  /** Work that has begun continues; waiting work begins if more is allowed now. */
  set limit(limit: number) {
    this.#slots.limit = limit
    while (this.#admitOne());
  }

  /**
   * Settles as the work does, or rejects with the signal's reason if the work did not begin. The work never begins
   * before `run` has returned. A failure only affects its caller: the next work runs nevertheless.
   */
  async run<T>(work: () => Promise<T>, { key = '', signal }: QueueOptions = {}): Promise<T> {
    signal?.throwIfAborted()
    // `take` would cost as much again: this is on the hottest paths.
    const isGiven = await (this.#slots.enter(key) || this.#wait(key, signal).entry)
    if (!isGiven) throw signal?.reason
    try {
      return await work()
    } finally {
      this.#leave(key)
    }
  }

  /** Never throws. Gives a free slot even if the signal is already aborted. */
  take({ key = '', signal }: QueueOptions = {}): SlotRequest {
    const isFree = this.#slots.enter(key)
    const { entry, giveUp } = isFree ? AT_ONCE : this.#wait(key, signal)
    let isLeft = false
    const leave = () => {
      if (!isLeft && giveUp() === 'given') this.#leave(key)
      isLeft = true
    }
    return { isFree, entry, leave }
  }

  #wait(key: string, signal: AbortSignal | undefined): Wait {
    const { promise: entry, resolve } = Promise.withResolvers<boolean>()
    let outcome: Outcome | undefined
    const end = (how: Outcome) => {
      outcome = how
      signal?.removeEventListener('abort', giveUp)
      resolve(how === 'given')
    }
    const waiter = { enter: () => end('given') }
    const giveUp = (): Outcome => {
      if (outcome) return outcome
      this.#remove(key, waiter)
      end('left')
      return 'left'
    }
    this.#add(key, waiter)
    if (signal?.aborted) giveUp()
    else signal?.addEventListener('abort', giveUp)
    return { entry, giveUp }
  }

  #add(key: string, waiter: Waiter): void {
    const same = this.#waiting.get(key)
    if (same) same.add(waiter)
    else this.#waiting.set(key, new Set([waiter]))
  }

  #remove(key: string, waiter: Waiter): void {
    const same = this.#waiting.get(key)
    same?.delete(waiter)
    if (same?.size === 0) this.#waiting.delete(key)
  }

  #leave(key: string): void {
    this.#slots.leave(key)
    if (this.#waiting.size > 0) this.#admitOne()
  }

  /** Gives a free slot to one waiter, of the first key that may have it. Returns false if no waiter may have it. */
  #admitOne(): boolean {
    for (const [next, same] of this.#waiting) {
      if (!this.#slots.enter(next)) continue
      const [waiter] = same
      if (!waiter) throw new Error('A key without waiters is removed with its last one.')
      this.#remove(next, waiter)
      // Move it to the end: the keys take turns.
      if (same.size > 0 && this.#waiting.size > 1) {
        this.#waiting.delete(next)
        this.#waiting.set(next, same)
      }
      waiter.enter()
      return true
    }
    return false
  }
}

type Outcome = 'given' | 'left'

type Wait = { readonly entry: Promise<boolean>; readonly giveUp: () => Outcome }

const AT_ONCE: Wait = { entry: Promise.resolve(true), giveUp: () => 'given' }
