/** `meta.json` in the directory of each conversation: written often, by one writer at a time, and always the newest. */
import { readFile } from 'node:fs/promises'
import { replaceFile } from '../../lib/durable-file.ts'
import { LatestWrites } from '../shared/latest-writes.ts'
import type { Snapshots } from '../storage.ts'

export class SnapshotFiles implements Snapshots {
  /** Contains one directory per conversation. */
  readonly #directory: string
  // An old or empty file after a power failure is detected by its `lastSeq`, and the log is folded from the start.
  readonly #writes = new LatestWrites((id, snapshot) =>
    replaceFile(this.#pathOf(id), JSON.stringify(snapshot), { durable: false }),
  )

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
    return this.#writes.write(id, snapshot)
  }

  /** Resolves when the current write of this conversation has succeeded or failed. */
  written(id: string): Promise<void> {
    return this.#writes.written(id)
  }

  /** Resolves when no write is in progress. */
  settled(): Promise<void> {
    return this.#writes.settled()
  }

  #pathOf(id: string): string {
    return `${this.#directory}/${id}/meta.json`
  }
}
