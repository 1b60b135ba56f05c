/** The replays of a server that is alone: one file each. */
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { makeDirectories } from '../files/make-directories.ts'
import { replaceFile } from '../lib/durable-file.ts'
import { ignoreMissing } from '../lib/error-code.ts'
import type { Sealer } from '../security/sealer.ts'
import type { ReplayRecord, ReplayRecords } from './replay-record.ts'
import { ReplayTexts } from './replay-record.ts'

export type ReplayFilesDeps = {
  /** Created by the first write. */
  readonly directory: string
  readonly sealerOf: (replayId: string) => Sealer
  readonly onDamaged: (error: unknown, path: string) => void
}

export class ReplayFiles implements ReplayRecords {
  readonly #deps: ReplayFilesDeps
  readonly #texts: ReplayTexts

  constructor(deps: ReplayFilesDeps) {
    this.#deps = deps
    this.#texts = new ReplayTexts(deps.sealerOf)
  }

  async readAll(): Promise<ReplayRecord[]> {
    const { directory, onDamaged } = this.#deps
    const names = (await readdir(directory).catch(ignoreMissing)) ?? []
    const foundRecords: ReplayRecord[] = []
    for (const name of names.toSorted()) {
      if (!name.endsWith('.json')) continue
      const path = join(directory, name)
      try {
        foundRecords.push(this.#texts.read(await readFile(path, 'utf8')))
      } catch (error) {
        onDamaged(error, path)
      }
    }
    return foundRecords
  }

  async write(record: ReplayRecord): Promise<void> {
    const path = this.#pathOf(record.replay.id)
    await makeDirectories(this.#deps.directory, 0o700)
    await replaceFile(path, this.#texts.write(record), { draft: `${path}.new` })
  }

  async remove(id: string): Promise<void> {
    this.#texts.forget(id)
    await rm(this.#pathOf(id), { force: true })
  }

  #pathOf(id: string): string {
    return join(this.#deps.directory, `${id}.json`)
  }
}
