/** Standard input of one command: buffers writes until the shell has opened the pipe. */
import { constants, openSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { codeOf } from '../lib/error-code.ts'

const MAX_WAITING_BYTES = 16 * 1024 ** 2
/** The shell opens it at the very start of the command. */
const OPEN_LOOKS_MS = [1, 2, 5, 10, 20]

export class InputPipe {
  readonly #waiting: Buffer[] = []
  #socket: Socket | undefined
  #isEnded = false
  #isClosed = false

  /** True if something may still read the input. */
  get isOpen(): boolean {
    return !this.#isEnded && !this.#isClosed
  }

  /** Returns false, and discards the text, if too much unread input is already buffered. */
  write(text: string): boolean {
    const waiting = this.#socket?.writableLength ?? this.#waiting.reduce((sum, bytes) => sum + bytes.length, 0)
    const bytes = Buffer.from(text)
    if (waiting > 0 && waiting + bytes.length > MAX_WAITING_BYTES) return false
    if (this.#socket) this.#socket.write(bytes)
    else this.#waiting.push(bytes)
    return true
  }

  /** The command reads the buffered input, and then the end of file. */
  end(): void {
    this.#isEnded = true
    this.#socket?.end()
  }

  /**
   * `path` is a fifo that the shell is about to open for reading. Resolves when it has, or when the command has ended.
   */
  async connect(path: string): Promise<void> {
    const fd = await this.#open(path)
    await rm(path, { force: true }).catch(() => {}) // removed with its directory, at the latest
    if (fd === undefined) return
    const socket = new Socket({ fd, readable: false, writable: true })
    // A command need not read all of its input, so this error is ignored.
    socket.on('error', () => this.close())
    for (const bytes of this.#waiting.splice(0)) socket.write(bytes)
    this.#socket = socket
    if (this.#isEnded) socket.end()
    if (this.#isClosed) socket.destroy()
  }

  /** The command has ended: nothing reads the input any more. */
  close(): void {
    this.#isClosed = true
    this.#waiting.length = 0
    this.#socket?.destroy()
  }

  async #open(path: string): Promise<number | undefined> {
    for (let look = 0; !this.#isClosed; look++) {
      try {
        // Non-blocking: this fails until a reader has opened it, and while no descriptor is free.
        return openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)
      } catch (error) {
        if (codeOf(error) === 'ENOENT') return undefined
      }
      await delay(OPEN_LOOKS_MS[look] ?? OPEN_LOOKS_MS.at(-1))
    }
    return undefined
  }
}
