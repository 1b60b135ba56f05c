/**
 * Knows which conversations are open in front of a person: a chat says so again and again, so that one that was killed
 * is gone soon.
 */

/** How long an announcement holds, in milliseconds. A chat repeats it three times as often. */
const HOLDS_MS = 30_000

/** How many clients of one conversation are remembered: those that announced themselves last. */
const MAX_CLIENTS = 16

export class Attendance {
  readonly #now: () => number
  /** The time when a client is gone, by conversation, and by the name that the client has given itself. */
  readonly #until = new Map<string, Map<string, number>>()
  #forgetsAt = 0

  /** `now`: a clock that never jumps, in milliseconds. */
  constructor(now = () => performance.now()) {
    this.#now = now
  }

  announce(id: string, client: string): void {
    this.#forgetGone()
    const clients = this.#until.get(id) ?? new Map<string, number>()
    this.#until.set(id, clients)
    // The last one is at the end.
    clients.delete(client)
    clients.set(client, this.#now() + HOLDS_MS)
    for (const first of clients.keys()) {
      if (clients.size <= MAX_CLIENTS) break
      clients.delete(first)
    }
  }

  leave(id: string, client: string): void {
    const clients = this.#until.get(id)
    clients?.delete(client)
    if (clients?.size === 0) this.#until.delete(id)
  }

  /** The number of conversations that are remembered. */
  get size(): number {
    return this.#until.size
  }

  has(id: string): boolean {
    const clients = this.#until.get(id)
    return clients !== undefined && clients.values().some((until) => until > this.#now())
  }

  /** Looks at all of them only as often as one can be gone: each request would take longer otherwise. */
  #forgetGone(): void {
    const now = this.#now()
    if (now < this.#forgetsAt) return
    this.#forgetsAt = now + HOLDS_MS
    for (const [id, clients] of this.#until) {
      for (const [client, until] of clients) if (until <= now) clients.delete(client)
      if (clients.size === 0) this.#until.delete(id)
    }
  }
}
