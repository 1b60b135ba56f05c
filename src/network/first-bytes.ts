/** Reads the first bytes of a connection before it is forwarded, as far as needed and no further. */
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { MAX_HANDSHAKE_BYTES } from './handshake.ts'

export class FirstBytes {
  readonly #socket: Socket
  #unused: Buffer = Buffer.alloc(0)

  constructor(socket: Socket) {
    this.#socket = socket
  }

  /**
   * Resolves with the first result of `parse` that is defined; `parse` receives all unused bytes. Undefined if the
   * client has ended.
   */
  async read<T>(parse: (bytes: Buffer) => T | undefined, signal: AbortSignal): Promise<T | undefined> {
    for (;;) {
      const parsedBytes = parse(this.#unused)
      if (parsedBytes !== undefined) return parsedBytes
      if (!(await this.#readMore(signal))) return undefined
    }
  }

  use(count: number): void {
    this.#unused = this.#unused.subarray(count)
  }

  /** The unused bytes. The socket, which may have ended by now, has only later ones. */
  get rest(): Uint8Array {
    return this.#unused
  }

  async #readMore(signal: AbortSignal): Promise<boolean> {
    for (;;) {
      const room = MAX_HANDSHAKE_BYTES + 1 - this.#unused.length
      const { readableLength } = this.#socket
      // Never read more than fits: a lot of data can follow a handshake.
      const bytes: unknown = readableLength > 0 ? this.#socket.read(Math.min(readableLength, room)) : null
      if (bytes instanceof Buffer) {
        this.#unused = Buffer.concat([this.#unused, bytes])
        return true
      }
      if (this.#socket.readableEnded || this.#socket.destroyed) return false
      // Reading makes the socket report its end.
      this.#socket.read(0)
      await once(this.#socket, 'readable', { signal })
      if (this.#socket.readableLength === 0) return false
    }
  }
}
