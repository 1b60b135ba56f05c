/**
 * Stores which conversations work in a shared workdir: a directory for each workdir, named by a hash of its path, with
 * a file for each conversation.
 */
import { codeOf } from '../../lib/error-code.ts'
import { createHash } from 'node:crypto'
import { readdir, rename, rm, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { makeDirectories } from '../../files/make-directories.ts'
import { syncDirectory } from '../../lib/durable-file.ts'
import type { SharedWorkdirs } from '../storage.ts'
import { exists } from './mark-files.ts'

export class GuestFiles implements SharedWorkdirs {
  readonly #directory: string
  readonly #isThere: (id: string) => Promise<boolean>

  /** Creates `directory` on first use. `isThere` returns true if anything of a conversation exists. */
  constructor(directory: string, isThere: (id: string) => Promise<boolean>) {
    this.#directory = directory
    this.#isThere = isThere
  }

  async add(workdir: string, ids: readonly string[]): Promise<void> {
    const place = this.#placeOf(workdir)
    await makeDirectories(place, 0o700)
    await Promise.all(ids.map((id) => writeFile(join(place, id), '', { mode: 0o600 })))
    await syncDirectory(place)
    await syncDirectory(this.#directory)
  }

  isShared(workdir: string): Promise<boolean> {
    return exists(this.#placeOf(workdir))
  }

  has(workdir: string, id: string): Promise<boolean> {
    return exists(join(this.#placeOf(workdir), id))
  }

  async move(workdir: string, to: string): Promise<void> {
    try {
      await rename(this.#placeOf(workdir), this.#placeOf(to))
      await syncDirectory(this.#directory)
    } catch (error) {
      if (!['ENOENT', 'ENOTEMPTY', 'EEXIST'].includes(codeOf(error) ?? '')) throw error
    }
  }

  async leave(workdir: string, id: string): Promise<boolean> {
    const place = this.#placeOf(workdir)
    const names = await readdir(place).catch((error: unknown) => {
      if (codeOf(error) !== 'ENOENT') throw error
      return []
    })
    for (const name of names)
      if (name === id || !(await this.#isThere(name))) await rm(join(place, name), { force: true })
    return await isNowEmpty(place)
  }

  #placeOf(workdir: string): string {
    return join(this.#directory, createHash('sha256').update(workdir).digest('hex'))
  }
}

/** Returns true if the directory was removed or did not exist. */
async function isNowEmpty(place: string): Promise<boolean> {
  try {
    await rmdir(place)
    return true
  } catch (error) {
    const code = codeOf(error)
    if (code === 'ENOTEMPTY') return false
    if (code === 'ENOENT') return true
    throw error
  }
}
