/**
 * The headers of a response, as much of `Headers` as the SDKs read. The global class is part of the fetch of Node, a
 * second HTTP client.
 */
export class ReceivedHeaders implements Iterable<[name: string, value: string]> {
  /** By names in lower case. */
  readonly #values = new Map<string, string>()

  /** Several values of one name are joined. */
  constructor(received: Readonly<Record<string, string | readonly string[] | undefined>>) {
    for (const [name, value] of Object.entries(received)) {
      if (value !== undefined)
        this.#values.set(name.toLowerCase(), typeof value === 'string' ? value : value.join(', '))
    }
  }

  get(name: string): string | null {
    return this.#values.get(name.toLowerCase()) ?? null
  }

  has(name: string): boolean {
    return this.#values.has(name.toLowerCase())
  }

  entries(): IterableIterator<[name: string, value: string]> {
    return this.#values.entries()
  }

  [Symbol.iterator](): IterableIterator<[name: string, value: string]> {
    return this.entries()
  }
}
