/** A small kernel file that is read repeatedly: it stays open, so that a read is one system call instead of four. */
import { closeSync, openSync, readSync } from 'node:fs'

/** Shared: every read is processed before the next one begins. */
const scratch = Buffer.allocUnsafe(4096)

export class CounterFile {
  readonly #path: string
  #fd: number | undefined

  constructor(path: string) {
    this.#path = path
  }

  /** Returns its current content; an empty text if it cannot be read. */
  read(): string {
    try {
      this.#fd ??= openSync(this.#path, 'r')
      return scratch.toString('latin1', 0, readSync(this.#fd, scratch, 0, scratch.length, 0))
    } catch {
      this.close()
      return ''
    }
  }

  /** The next read reopens it. */
  close(): void {
    const fd = this.#fd
    this.#fd = undefined
    if (fd !== undefined) closeSync(fd)
  }
}
