/**
 * Temporary files in workdirs, next to the files that they become. Each is noted in the data directory before it is created,
 * so that the next server removes those that a killed one has left. They are hidden from everyone else.
 */
import { randomBytes } from 'node:crypto'
import { mkdir, readFile, readdir, rm, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf, ignoring } from '../../lib/error-code.ts'
import { FileRefusal } from './file-refusal.ts'
import type { OpenedPath } from './opened-path.ts'
import { openUnmoved, within } from './opened-path.ts'

const TEMPORARY_NAME = /^\.(?:upload|edit)-[0-9a-f]{16}\.tmp$/

/** Returns true for the name of a file that is not complete yet. */
export const isTemporaryName = (name: string): boolean => TEMPORARY_NAME.test(name)

export class UnfinishedFiles {
  readonly #directory: string

  /** `directory` is created on demand, and not its parents. */
  constructor(directory: string) {
    this.#directory = directory
  }

  /** Returns a name for a new file in the open directory. Call `forget` when nothing has this name any more. */
  async note({ path }: Pick<OpenedPath, 'path'>, kind: 'upload' | 'edit'): Promise<string> {
    const name = `.${kind}-${randomBytes(8).toString('hex')}.tmp`
    const write = () => writeFile(join(this.#directory, name), path, { mode: 0o600 })
    await write().catch(async (error: unknown) => {
      if (codeOf(error) !== 'ENOENT') throw error
      await mkdir(this.#directory, { mode: 0o700 }).catch(ignoring('EEXIST'))
      await write()
    })
    return name
  }

  async forget(name: string): Promise<void> {
    await rm(join(this.#directory, name), { force: true })
  }

  /**
   * Removes what an earlier server has left. Call it before the first `note`. It continues in the background: a workdir may
   * be on a file system that does not answer.
   */
  async removeLeft(onFault: (error: unknown) => void): Promise<{ readonly removed: Promise<void> }> {
    const names = (await readdir(this.#directory).catch(ignoring('ENOENT'))) ?? []
    const removeAll = async () => {
      for (const name of names.filter(isTemporaryName)) await this.#remove(name).catch(onFault)
    }
    return { removed: removeAll() }
  }

  /** It may be gone, with its directory. A link in the path was put there by someone else. */
  async #remove(name: string): Promise<void> {
    try {
      await using place = await openUnmoved(await readFile(join(this.#directory, name), 'utf8'))
      await unlink(within(place, name))
    } catch (error) {
      if (!(error instanceof FileRefusal)) ignoring('ENOENT', 'ENOTDIR', 'ELOOP')(error)
    }
    await this.forget(name)
  }
}
