/**
 * Owns the descriptor of one file: opens it on demand, closes it when idle. Knows bytes and offsets, nothing about
 * events.
 */
import fs from 'node:fs'
import { promisify } from 'node:util'
import { Problem } from '../../../contract/problem.ts'

// Asynchronous, on bare descriptors. A write and fdatasync of 500 bytes takes 39 µs at the median with the *Sync calls,
// 50–66 µs through the thread pool and 69 µs through a FileHandle (Node 26, ext4). The Sync calls are still worse: they
// would stop every other conversation and stream while this disk flushes, which on a busy one is many ms. O_DSYNC makes
// the two calls one: a fifth less time, and 25 instead of 52 µs of CPU.
const open = promisify(fs.open)
const close = promisify(fs.close)
const fstat = promisify(fs.fstat)
const ftruncate = promisify(fs.ftruncate)
const fdatasync = promisify(fs.fdatasync)
const read = promisify(fs.read)
const write = promisify(fs.write)

const HOW_OPENED = fs.constants.O_RDWR | fs.constants.O_DSYNC

export class LogFile {
  readonly #path: string
  readonly #idleMs: number
  readonly #onIdle: () => void
  #descriptor: Promise<number> | undefined
  #openings = 0
  #users = 0
  /** Resolves when nothing uses the descriptor any more. */
  #unused: PromiseWithResolvers<void> | undefined
  #closed: Error | undefined
  #idle: NodeJS.Timeout | undefined

  /**
   * The file is opened at first use, and must exist by then or be created by `create`. After `idleMs` without use its
   * descriptor is closed.
   */
  constructor(path: string, { idleMs, onIdle }: { idleMs: number; onIdle: () => void }) {
    this.#path = path
    this.#idleMs = idleMs
    this.#onIdle = onIdle
  }

  /**
   * The number of the current opening of the file, from 0; undefined while it is closed. The file may have been
   * replaced between two openings.
   */
  get opening(): number | undefined {
    return this.#descriptor && this.#openings
  }

  /** Creates an empty file; its name is not synced. Throws the system's error, EEXIST if the file exists. */
  async create(): Promise<void> {
    const { O_CREAT, O_EXCL } = fs.constants
    this.#descriptor = Promise.resolve(await open(this.#path, HOW_OPENED | O_CREAT | O_EXCL, 0o600))
    this.#releaseWhenIdle()
  }

  size(): Promise<number> {
    return this.#use(async (fd) => (await fstat(fd)).size)
  }

  /**
   * Reads exactly `length` bytes, into `memory` if it has room; a file that ends earlier is damaged, because only durable
   * bytes are read.
   */
  read(position: number, length: number, memory?: Buffer): Promise<Buffer> {
    return this.#use(async (fd) => {
      const bytes = memory && memory.length >= length ? memory.subarray(0, length) : Buffer.allocUnsafeSlow(length)
      let doneBytes = 0
      while (doneBytes < length) {
        const { bytesRead } = await read(fd, bytes, doneBytes, length - doneBytes, position + doneBytes)
        if (bytesRead === 0) throw endsEarly(position + doneBytes)
        doneBytes += bytesRead
      }
      return bytes
    })
  }

  /** Writes all bytes; they are on disk when this resolves. If it throws, some of them may have been written. */
  write(bytes: Buffer, position: number): Promise<void> {
    return this.#use(async (fd) => {
      // A disk that is filling up first accepts a part of the bytes, and reports ENOSPC only for the rest.
      for (let doneBytes = 0; doneBytes < bytes.length;)
        doneBytes += (await write(fd, bytes, doneBytes, bytes.length - doneBytes, position + doneBytes)).bytesWritten
      // Bytes written to a removed file are lost. For an open file the kernel answers this from memory.
      if (fs.fstatSync(fd).nlink === 0) throw new Error(`${this.#path} was removed`)
    })
  }

  /** Syncs what others wrote, and `truncate`. */
  sync(): Promise<void> {
    return this.#use((fd) => fdatasync(fd))
  }

  truncate(length: number): Promise<void> {
    return this.#use((fd) => ftruncate(fd, length))
  }

  /** Closes permanently, after operations in progress; a later use throws `why`. */
  async close(why: Error): Promise<void> {
    this.#closed ??= why
    // If a descriptor were closed during a read, its number could be reused for another file, which would be read
    // instead.
    if (this.#users > 0) await (this.#unused ??= Promise.withResolvers()).promise
    await this.#release()
  }

  async #use<T>(work: (fd: number) => Promise<T>): Promise<T> {
    if (this.#closed) throw this.#closed
    this.#users += 1
    try {
      return await work(await (this.#descriptor ??= this.#open()))
    } finally {
      this.#users -= 1
      if (this.#users === 0) this.#unused?.resolve()
      if (this.#descriptor) this.#releaseWhenIdle()
    }
  }

  async #open(): Promise<number> {
    this.#openings += 1
    try {
      return await open(this.#path, HOW_OPENED)
    } catch (error) {
      // An error is not cached: the next use retries, because running out of descriptors (EMFILE) is temporary.
      this.#descriptor = undefined
      throw error
    }
  }

  #releaseWhenIdle(): void {
    if (this.#idle) {
      this.#idle.refresh()
      return
    }
    this.#idle = setTimeout(() => {
      this.#idle = undefined
      if (this.#users > 0) return this.#releaseWhenIdle()
      this.#onIdle()
      // Nothing is lost if close fails: all relevant bytes were synced before.
      this.#release().catch(() => undefined)
    }, this.#idleMs).unref()
  }

  async #release(): Promise<void> {
    clearTimeout(this.#idle)
    this.#idle = undefined
    const descriptor = this.#descriptor
    this.#descriptor = undefined
    if (descriptor) await close(await descriptor)
  }
}

function endsEarly(at: number): Problem {
  return new Problem('conversation_damaged', `The event log of this conversation ends early, at byte ${at}.`, {
    details: { offset: at },
  })
}
