/** Which conversations are open in front of a person: a chat says so again and again, so that one that was killed is gone soon. */

/** How long an announcement holds, in milliseconds. A chat repeats it three times as often. */
const HOLDS_MS = 30_000

export class Attendance {
  readonly #now: () => number
  /** By conversation, and by the name that the client has given itself: when it is gone. */
  readonly #until = new Map<string, Map<string, number>>()

  /** `now`: a clock that never jumps, in milliseconds. */
  constructor(now = () => performance.now()) {
    this.#now = now
  }

  announce(id: string, client: string): void {
    this.#forgetGone()
    const clients = this.#until.get(id) ?? new Map<string, number>()
    this.#until.set(id, clients.set(client, this.#now() + HOLDS_MS))
  }

  leave(id: string, client: string): void {
    this.#until.get(id)?.delete(client)
    this.#forgetGone()
  }

  has(id: string): boolean {
    const clients = this.#until.get(id)
    return clients !== undefined && clients.values().some((until) => until > this.#now())
  }

  #forgetGone(): void {
    const now = this.#now()
    for (const [id, clients] of this.#until) {
      for (const [client, until] of clients) if (until <= now) clients.delete(client)
      if (clients.size === 0) this.#until.delete(id)
    }
  }
}
