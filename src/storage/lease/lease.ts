/**
 * The time for which an instance may act on its conversations while others could take them over. It ends by itself, before
 * others may take over, unless the storage renews it. Knows nothing about how it is renewed.
 */
import { afterRead, NEVER, orAborted, timerMs } from '../../lib/bounded-wait.ts'

/** Absent where no other instance can take over: nothing waits there. */
export interface Lease {
  /** Ask it immediately before each effect outside of the storage: a request, a process, a change of a file. */
  readonly isHeld: boolean
  /** Milliseconds while it was held, for time limits: it stands still while the instance is suspended. */
  readonly heldMs: number
  /** Resolves when it is held. Rejects with the reason of the signal, or when it can never be held again. */
  whenHeld(signal?: AbortSignal): Promise<void>
  /** Calls the listener now and after each renewal with the milliseconds that are left. */
  onRenewed(listener: (leftMs: number) => void): void
}

export type RenewedLeaseOptions = {
  /** How long each renewal is valid, in milliseconds. */
  readonly validMs: number
  /** The time when the request that began it was sent. */
  readonly beganAt: number
  /** A monotonic clock, in milliseconds. */
  readonly now: () => number
  /** Called when it is held again after a time without it. */
  readonly onSuspended?: (() => void) | undefined
}

export class RenewedLease implements Lease {
  readonly #options: RenewedLeaseOptions
  readonly #listeners: ((leftMs: number) => void)[] = []
  #heldUntil: number
  #suspendedMs = 0
  #isLost = false
  #next = nextRenewal()

  constructor(options: RenewedLeaseOptions) {
    this.#options = options
    this.#heldUntil = options.beganAt + options.validMs
  }

  get isHeld(): boolean {
    return !this.#isLost && this.#options.now() < this.#heldUntil
  }

  get heldMs(): number {
    return Math.min(this.#options.now(), this.#heldUntil) - this.#suspendedMs
  }

  async whenHeld(signal: AbortSignal = NEVER): Promise<void> {
    signal.throwIfAborted()
    while (!this.isHeld) await orAborted(this.#next.promise, signal)
  }

  onRenewed(listener: (leftMs: number) => void): void {
    this.#listeners.push(listener)
    listener(this.#heldUntil - this.#options.now())
  }

  /** `sentAt`: when the request was sent, not when it was answered. An answer that arrives too late renews nothing. */
  renew(sentAt: number): void {
    const now = this.#options.now()
    const until = sentAt + this.#options.validMs
    if (until <= now || this.#isLost) return
    if (now > this.#heldUntil) this.#options.onSuspended?.()
    this.#suspendedMs += Math.max(0, now - this.#heldUntil)
    this.#heldUntil = until
    for (const listener of this.#listeners) listener(until - now)
    this.#next.resolve()
    this.#next = nextRenewal()
  }

  /** Others may have taken over: what waits rejects with this error. */
  lose(error: unknown): void {
    this.#isLost = true
    this.#next.reject(error)
  }
}

function nextRenewal(): PromiseWithResolvers<void> {
  const next = Promise.withResolvers<void>()
  next.promise.catch(() => {}) // nobody may wait
  return next
}

/** Waits for the lease. Resolves to false if the signal is aborted first, or if it is lost. */
export const mayBegin = (lease: Lease, signal: AbortSignal): Promise<boolean> =>
  lease.whenHeld(signal).then(
    () => true,
    () => false,
  )

/**
 * Calls `end` after this time, which stands still while the lease is not held. Returns a function that cancels it. If the
 * lease is lost, `end` is not called: the instance ends.
 */
export function startTimeLimit(ms: number, lease: Lease | undefined, end: () => void): () => void {
  const isOver = new AbortController()
  const endsAt = lease && lease.heldMs + ms
  let timer: NodeJS.Timeout | undefined
  const wait = (leftMs: number) => {
    timer = setTimeout(() => afterRead(look), timerMs(leftMs))
  }
  const look = () => {
    if (isOver.signal.aborted) return
    const remainingMs = lease && endsAt !== undefined ? endsAt - lease.heldMs : 0
    if (!lease || remainingMs <= 0) return end()
    void lease.whenHeld(isOver.signal).then(
      () => wait(remainingMs),
      () => {}, // cancelled, or the instance ends
    )
  }
  wait(ms)
  return () => {
    clearTimeout(timer)
    isOver.abort()
  }
}
