/** The blocks of an answer that have begun, by the index that the server gave them. */

/** A server may use an index twice; the number is unique in the answer. */
export type NumberedBlock<T> = T & { readonly number: number }

/** Vendors send one block after the other; a server that begins blocks forever must not exhaust the memory. */
const MAX_OPEN_BLOCKS = 256

export class OpenBlocks<T extends object> {
  readonly #open = new Map<number, NumberedBlock<T>>()
  #begun = 0

  /** True if no block has begun yet. */
  get isEmpty(): boolean {
    return this.#begun === 0
  }

  /** Begins a block; an earlier one with the same index ends. The block that is open for longest ends if there are too many. */
  begin(index: number, block: T): NumberedBlock<T> {
    const open = { ...block, number: this.#begun++ }
    this.#open.delete(index)
    this.#open.set(index, open)
    const [oldest] = this.#open.keys()
    if (this.#open.size > MAX_OPEN_BLOCKS && oldest !== undefined) this.#open.delete(oldest)
    return open
  }

  at(index: number): NumberedBlock<T> | undefined {
    return this.#open.get(index)
  }

  end(index: number): NumberedBlock<T> | undefined {
    const open = this.#open.get(index)
    this.#open.delete(index)
    return open
  }
}
