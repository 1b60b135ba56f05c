/** `meta.json` in the directory of each conversation: written often, by one writer at a time, and always the newest. */
import { readFile } from 'node:fs/promises'
import { replaceFile } from '../../lib/durable-file.ts'
import type { Snapshots } from '../storage.ts'

export class SnapshotFiles implements Snapshots {
  /** Contains one directory per conversation. */
  readonly #directory: string
  // One write at a time per conversation, always of the newest snapshot: an older one must not replace it.
  readonly #newest = new Map<string, object>()
  readonly #writing = new Map<string, Promise<void>>()

  constructor(directory: string) {
    this.#directory = directory
  }

  /** Reads after pending writes. Returns undefined if there is none, or if it is not JSON: it is only a cache. */
  async read(id: string): Promise<unknown> {
    await this.written(id)
    try {
      return JSON.parse(await readFile(this.#pathOf(id), 'utf8'))
    } catch {
      return undefined // it is missing or torn
    }
  }

  write(id: string, snapshot: object): Promise<void> {
    const waiting = this.#newest.has(id)
    this.#newest.set(id, snapshot)
    // oxlint-disable-next-line typescript/no-non-null-assertion -- set together with #newest
    if (waiting) return this.#writing.get(id)!
    const written = this.written(id).then(() => {
      // oxlint-disable-next-line typescript/no-non-null-assertion -- set above, and removed by this write only
      const latest = this.#newest.get(id)!
      this.#newest.delete(id)
      // After a power failure an old or empty file is detected by its `lastSeq`, and the log is folded from the start.
      return replaceFile(this.#pathOf(id), JSON.stringify(latest), { durable: false })
    })
    const done = written.finally(() => this.#writing.get(id) === done && this.#writing.delete(id))
    this.#writing.set(id, done)
    return done
  }

  /** Resolves when the current write of this conversation has succeeded or failed. */
  async written(id: string): Promise<void> {
    await this.#writing.get(id)?.catch(() => {}) // reported to the caller that writes
  }

  /** Resolves when no write is in progress. */
  async settled(): Promise<void> {
    while (this.#writing.size > 0) await Promise.allSettled(this.#writing.values())
  }

  #pathOf(id: string): string {
    return `${this.#directory}/${id}/meta.json`
  }
}
