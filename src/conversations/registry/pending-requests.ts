/** The requests that are being answered where several instances share a database: what they need is not handed over meanwhile. */

/** Stands for conversations that a request is about to create. */
export const CREATED = 'created'

export class PendingRequests {
  readonly #counts = new Map<string, number>()

  get areAny(): boolean {
    return this.#counts.size > 0
  }

  /** Call the returned function once, when the response has ended. `names` are ids of conversations, or others. */
  begin(names: readonly string[]): () => void {
    for (const name of names) this.#count(name, 1)
    return () => {
      for (const name of names) this.#count(name, -1)
    }
  }

  has(name: string): boolean {
    return this.#counts.has(name)
  }

  #count(name: string, change: number): void {
    const count = (this.#counts.get(name) ?? 0) + change
    if (count > 0) this.#counts.set(name, count)
    else this.#counts.delete(name)
  }
}
