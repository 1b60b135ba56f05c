/** A small file of the kernel that is read again and again: it stays open, which makes a read one system call, not four. */
import { closeSync, openSync, readSync } from 'node:fs'

/** Shared: every read is handled before the next one begins. */
const scratch = Buffer.allocUnsafe(4096)

export class CounterFile {
  readonly #path: string
  #fd: number | undefined

  constructor(path: string) {
    this.#path = path
  }

  /** As it is now; nothing when it cannot be read. */
  read(): string {
    try {
      this.#fd ??= openSync(this.#path, 'r')
      return scratch.toString('latin1', 0, readSync(this.#fd, scratch, 0, scratch.length, 0))
    } catch {
      this.close()
      return ''
    }
  }

  /** The next read opens it again. */
  close(): void {
    const fd = this.#fd
    this.#fd = undefined
    if (fd !== undefined) closeSync(fd)
  }
}
