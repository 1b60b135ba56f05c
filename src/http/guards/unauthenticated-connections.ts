/** Connections that have not sent a key yet: limited per client, so that one client cannot exhaust the total. */

/** Connections per client. */
export const MAX_WAITING_PER_CLIENT = 20
/** Connections of all clients together. */
const MAX_WAITING = 2000

type Waiting = { readonly client: string; readonly onEvicted: () => void }

export class UnauthenticatedConnections {
  /** Sets keep insertion order: the longest waiting comes first. */
  readonly #all = new Set<Waiting>()
  readonly #byClient = new Map<string, Set<Waiting>>()

  /**
   * No client is refused: if the limit is reached, the longest waiting one is evicted. A client with a key sends it
   * immediately, so one behind the same address as others still gets in. Returns an idempotent function to leave.
   */
  enter(client: string, onEvicted: () => void): () => void {
    const waiting = { client, onEvicted }
    const own = this.#byClient.get(client) ?? new Set()
    this.#byClient.set(client, own.add(waiting))
    this.#all.add(waiting)
    if (own.size > MAX_WAITING_PER_CLIENT) this.#evictFirst(own)
    if (this.#all.size > MAX_WAITING) this.#evictFirst(this.#all)
    return () => this.#remove(waiting)
  }

  #evictFirst(those: ReadonlySet<Waiting>): void {
    const [first] = those
    if (!first) return
    this.#remove(first)
    first.onEvicted()
  }

  #remove(waiting: Waiting): void {
    this.#all.delete(waiting)
    const own = this.#byClient.get(waiting.client)
    own?.delete(waiting)
    if (own?.size === 0) this.#byClient.delete(waiting.client)
  }
}
