/** Standard input of one command: what is written to it waits until the shell has opened the pipe it comes through. */
import { constants, openSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { codeOf } from '../lib/error-code.ts'

const MAX_WAITING_BYTES = 16 * 1024 ** 2
/** The shell opens it as the first thing of the command. */
const OPEN_LOOKS_MS = [1, 2, 5, 10, 20]

export class InputPipe {
  readonly #waiting: Buffer[] = []
  #socket: Socket | undefined
  #isEnded = false
  #isClosed = false

  /** Whether anybody may still read what is written. */
  get isOpen(): boolean {
    return !this.#isEnded && !this.#isClosed
  }

  /** Answers false, and takes nothing, when too much waits already for the command to read it. */
  write(text: string): boolean {
    const waiting = this.#socket?.writableLength ?? this.#waiting.reduce((sum, bytes) => sum + bytes.length, 0)
    const bytes = Buffer.from(text)
    if (waiting > 0 && waiting + bytes.length > MAX_WAITING_BYTES) return false
    if (this.#socket) this.#socket.write(bytes)
    else this.#waiting.push(bytes)
    return true
  }

  /** The command reads what was written, and then the end. */
  end(): void {
    this.#isEnded = true
    this.#socket?.end()
  }

  /** `path` is a fifo that the shell is about to open for reading. Resolves once it has, or the command has ended. */
  async connect(path: string): Promise<void> {
    const fd = await this.#open(path)
    await rm(path, { force: true })
    if (fd === undefined) return
    const socket = new Socket({ fd, readable: false, writable: true })
    // A command that does not read to the end, or ends, is nothing to be told of.
    socket.on('error', () => this.close())
    for (const bytes of this.#waiting.splice(0)) socket.write(bytes)
    this.#socket = socket
    if (this.#isEnded) socket.end()
    if (this.#isClosed) socket.destroy()
  }

  /** The command has ended: nobody will read any more. */
  close(): void {
    this.#isClosed = true
    this.#waiting.length = 0
    this.#socket?.destroy()
  }

  async #open(path: string): Promise<number | undefined> {
    for (let look = 0; !this.#isClosed; look++) {
      try {
        // Not blocking: that fails as long as nobody has opened it for reading.
        return openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)
      } catch (error) {
        if (codeOf(error) !== 'ENXIO') return undefined
      }
      await delay(OPEN_LOOKS_MS[look] ?? OPEN_LOOKS_MS.at(-1))
    }
    return undefined
  }
}
