/** The bytes that one side sends before its connection is passed on, read as far as they are needed and not further. */
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { MAX_HANDSHAKE_BYTES } from './handshake.ts'

export class FirstBytes {
  readonly #socket: Socket
  #unused: Buffer = Buffer.alloc(0)

  constructor(socket: Socket) {
    this.#socket = socket
  }

  /** All that has come and was not used, as soon as `parse` makes something of it. Undefined when the client has ended. */
  async read<T>(parse: (bytes: Buffer) => T | undefined, signal: AbortSignal): Promise<T | undefined> {
    for (;;) {
      const parsed = parse(this.#unused)
      if (parsed !== undefined) return parsed
      if (!(await this.#readMore(signal))) return undefined
    }
  }

  use(count: number): void {
    this.#unused = this.#unused.subarray(count)
  }

  /** What came and is not used. The socket, which may have ended by now, has only what comes next. */
  get rest(): Uint8Array {
    return this.#unused
  }

  async #readMore(signal: AbortSignal): Promise<boolean> {
    for (;;) {
      const room = MAX_HANDSHAKE_BYTES + 1 - this.#unused.length
      const { readableLength } = this.#socket
      // Not more than fits: what is behind a handshake can be long.
      const bytes: unknown = readableLength > 0 ? this.#socket.read(Math.min(readableLength, room)) : null
      if (bytes instanceof Buffer) {
        this.#unused = Buffer.concat([this.#unused, bytes])
        return true
      }
      if (this.#socket.readableEnded || this.#socket.destroyed) return false
      // It makes the socket say that it has ended.
      this.#socket.read(0)
      await once(this.#socket, 'readable', { signal })
      if (this.#socket.readableLength === 0) return false
    }
  }
}
