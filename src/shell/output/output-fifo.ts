/**
 * A named pipe that carries one output stream of the commands, one command after the other, without a thread waiting
 * on it: who writes, when all of it has been read, and whether a background child still holds it.
 */
import { closeSync, constants, openSync, readSync, unlinkSync } from 'node:fs'
import { Socket } from 'node:net'
import type { OutputFilter } from '../shell.ts'

/** Takes the bytes, filtered (only valid during the call); answers false to be given no more until `resume`. */
export type OutputSink = (bytes: Uint8Array) => boolean

const READ_BYTES = 64 * 1024
/** The most that a pipe can hold (`/proc/sys/fs/pipe-max-size`): more than that was written after the drain began. */
const MAX_DRAIN_BYTES = 1024 * 1024

/**
 * After so long a silence, what the filter holds back is given out: a prompt, whose answer is what its program waits
 * for, or the end of a line that is not ended. It is the same time whatever is held back.
 */
const SILENCE_MS = 2000

/** Shared by all pipes: every read is handled before the next one begins. */
const scratch = Buffer.allocUnsafe(READ_BYTES)

export class OutputFifo {
  readonly path: string
  readonly #readEnd: number
  /** Held while the pipe is in use, so that the end of one writer is not the end of the stream. */
  #writeEnd: number | undefined
  readonly #socket: Socket
  readonly #filter: OutputFilter
  #sink: OutputSink = () => true
  #onEnd: () => void = () => {}
  #silence: NodeJS.Timeout | undefined

  /** `path` is a fifo that nobody has opened. Everything that comes out of it passes `filter`. */
  constructor(path: string, filter: OutputFilter) {
    this.path = path
    this.#filter = filter
    this.#readEnd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    this.#writeEnd = openWriteEnd(path)
    this.#socket = new Socket({
      fd: this.#readEnd,
      readable: true,
      writable: false,
      onread: {
        buffer: scratch,
        callback: (length, bytes) => this.#filtered(bytes.subarray(0, length)),
      },
    })
    // An error on a pipe of our own leaves nothing to read; 'close' follows it.
    this.#socket.on('error', () => {})
    this.#socket.on('close', () => {
      this.#endSilence()
      this.#give(this.#filter.flush())
      this.#onEnd()
    })
  }

  receive(sink: OutputSink): void {
    this.#sink = sink
    // The sink before may have stopped the reading and never come round to go on.
    this.#socket.resume()
  }

  resume(): void {
    this.#socket.resume()
  }

  /**
   * Reads all that was written before the call. `held` means that some process still has the pipe open; as long as it
   * has, the pipe is of no use to the next command.
   */
  drain(): 'free' | 'held' {
    // Without our own writer, the pipe itself tells whether there are others: end of file, or "try again".
    this.#closeWriteEnd()
    const state = this.#readAll()
    // Before the event loop can see the end of file.
    this.#writeEnd = openWriteEnd(this.path)
    return state
  }

  /**
   * After a command's end: gives its sink what the filter still holds. When processes in the background hold the pipe,
   * it goes with what they write: the end of the command may be in the middle of it.
   */
  endText(state: 'free' | 'held'): void {
    this.#endSilence()
    if (state === 'free') this.#give(this.#filter.flush())
  }

  /** Leaves the pipe to those who hold it; what they write goes to `sink` until the last of them ends. */
  retire(sink: OutputSink, onEnd: () => void): void {
    this.#sink = sink
    this.#onEnd = onEnd
    if (this.#filter.held > 0) this.#awaitSilence()
    this.#dropName()
    this.#closeWriteEnd()
    this.#socket.resume()
  }

  close(): void {
    this.#endSilence()
    this.#sink = () => true
    this.#dropName()
    this.#closeWriteEnd()
    this.#socket.destroy()
  }

  #readAll(): 'free' | 'held' {
    for (let total = 0; total < MAX_DRAIN_BYTES;) {
      const length = readAvailable(this.#readEnd)
      if (length === undefined) return 'held'
      if (length === 0) return 'free'
      total += length
      this.#filtered(scratch.subarray(0, length))
    }
    return 'held'
  }

  #filtered(bytes: Uint8Array): boolean {
    const mayGoOn = this.#give(this.#filter.push(bytes))
    if (this.#filter.held > 0) this.#awaitSilence()
    return mayGoOn
  }

  #awaitSilence(): void {
    if (this.#silence) this.#silence.refresh()
    else this.#silence = setTimeout(() => this.#give(this.#filter.release()), SILENCE_MS).unref()
  }

  #endSilence(): void {
    clearTimeout(this.#silence)
    this.#silence = undefined
  }

  #give(bytes: Uint8Array): boolean {
    return bytes.length === 0 || this.#sink(bytes)
  }

  #closeWriteEnd(): void {
    if (this.#writeEnd !== undefined) closeSync(this.#writeEnd)
    this.#writeEnd = undefined
  }

  #dropName(): void {
    try {
      unlinkSync(this.path)
    } catch {
      // It has no name any more, or the command removed it.
    }
  }
}

/** `undefined` when nothing is there now but may come, 0 when nobody can write any more. */
function readAvailable(fd: number): number | undefined {
  try {
    return readSync(fd, scratch, 0, READ_BYTES, null)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EAGAIN') return undefined
    throw error
  }
}

function openWriteEnd(path: string): number {
  return openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)
}
