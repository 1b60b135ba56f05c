/**
 * A named pipe for one output stream, used by one command after the other and read without blocking a thread: detects
 * when everything was read, and whether a background child still holds it.
 */
import { closeSync, constants, openSync, readSync, unlinkSync } from 'node:fs'
import { Socket } from 'node:net'
import type { OutputFilter } from '../shell.ts'

/** Receives filtered bytes, valid only during the call; returns false to pause until `resume`. */
export type OutputSink = (bytes: Uint8Array) => boolean

const READ_BYTES = 64 * 1024
/** Maximum capacity of a pipe (`/proc/sys/fs/pipe-max-size`): bytes beyond it were written after the drain began. */
const MAX_DRAIN_BYTES = 1024 * 1024

/**
 * The time without output after which the filter's buffered bytes are released: for example a prompt whose program
 * waits for the answer, or an unfinished line. The time is the same whatever is buffered.
 */
const SILENCE_MS = 2000

/** Shared by all pipes: every read is processed before the next one begins. */
const scratch = Buffer.allocUnsafe(READ_BYTES)

export class OutputFifo {
  readonly path: string
  readonly #readEnd: number
  /** Held while the pipe is in use, so that the end of one writer does not end the stream. */
  #writeEnd: number | undefined
  readonly #socket: Socket
  readonly #filter: OutputFilter
  #sink: OutputSink = () => true
  #onEnd: () => void = () => {}
  #silence: NodeJS.Timeout | undefined
  #isClosed = false
  /** Set if the write end could not be opened again after a command: what that command left the pipe as. */
  #spent: 'free' | 'held' | undefined

  /**
   * `path` is a fifo that nothing has opened. All its bytes pass through `filter`. Throws if it cannot be opened, and then
   * holds no descriptor.
   */
  constructor(path: string, filter: OutputFilter) {
    this.path = path
    this.#filter = filter
    this.#readEnd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    this.#writeEnd = this.#openFirst(path)
    this.#socket = new Socket({
      fd: this.#readEnd,
      readable: true,
      writable: false,
      onread: {
        buffer: scratch,
        callback: (length, bytes) => this.#filtered(bytes.subarray(0, length)),
      },
    })
    // An error on our own pipe means that nothing can be read; 'close' follows it.
    this.#socket.on('error', () => {})
    this.#socket.on('close', () => {
      this.#isClosed = true
      this.#endSilence()
      this.#give(this.#filter.flush())
      this.#onEnd()
    })
  }

  /** True if no further command may use the pipe: nothing would read it, and the command would wait for that forever. */
  get isSpent(): boolean {
    return this.#spent !== undefined
  }

  receive(sink: OutputSink): void {
    this.#sink = sink
    // The previous sink may have paused the pipe without resuming it.
    this.#socket.resume()
  }

  resume(): void {
    this.#socket.resume()
  }

  /**
   * Reads everything written before the call. `held` means that a process still has the pipe open; until it closes it,
   * the next command cannot use the pipe. Never throws: the command has run, and its result must not be lost.
   */
  drain(): 'free' | 'held' {
    if (this.#spent !== undefined) return this.#spent
    // The pipe reports, without our own writer, whether there are others: end of file, or "try again".
    this.#closeWriteEnd()
    let state: 'free' | 'held' = 'free'
    try {
      state = this.#readAll()
      // This must run before the event loop sees the end of file.
      this.#writeEnd = openWriteEnd(this.path)
    } catch {
      // No descriptor is free, for example: the event loop now closes the read end when no process holds the pipe.
      this.#spent = state
    }
    return state
  }

  /**
   * Ends the text of a command: releases the filter's buffered bytes. If background processes hold the pipe, they stay
   * with their output: the command's output may have ended in the middle of it.
   */
  endText(state: 'free' | 'held'): void {
    this.#endSilence()
    if (state === 'free') this.#give(this.#filter.flush())
  }

  /** Leaves the pipe to the processes that hold it; their output goes to `sink` until the last of them ends. */
  retire(sink: OutputSink, onEnd: () => void): void {
    this.#sink = sink
    this.#onEnd = onEnd
    if (this.#filter.held > 0) this.#awaitSilence()
    this.#dropName()
    this.#closeWriteEnd()
    if (this.#isClosed) onEnd()
    else this.#socket.resume()
  }

  close(): void {
    this.#endSilence()
    this.#sink = () => true
    this.#dropName()
    this.#closeWriteEnd()
    this.#socket.destroy()
  }

  #openFirst(path: string): number {
    try {
      return openWriteEnd(path)
    } catch (error) {
      closeSync(this.#readEnd)
      throw error
    }
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
      // It was already unlinked, or the command removed it.
    }
  }
}

/** Returns undefined if nothing is available yet, 0 if there are no writers any more. */
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
