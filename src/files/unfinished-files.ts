/**
 * Tracks files that are being received, so that the remains of a killed server are found: they are hidden from everyone
 * else.
 */
import { mkdir, readFile, readdir, rm, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Problem } from '../contract/problem.ts'
import { codeOf } from '../lib/error-code.ts'
import { parseJailPath } from './jail-path.ts'
import type { Jail } from './path-jail.ts'
import { entryPath, openDirectoryIn } from './path-jail.ts'

const TEMPORARY_NAME = /^\.upload-[0-9a-f]{16}\.tmp$/

/** Returns true for the name of a file that is not complete yet. */
export const isTemporaryName = (name: string): boolean => TEMPORARY_NAME.test(name)

export interface UnfinishedFiles {
  /** Call it before the file is created in that directory of the workdir. */
  readonly note: (directory: readonly string[], name: string) => Promise<void>
  readonly forget: (name: string) => Promise<void>
  /** Removes what an earlier server has left. Call it before the first `note`. */
  readonly sweep: (jail: Jail) => Promise<void>
}

/** `directory` is the server's own directory for one conversation; created on demand. */
export function createUnfinishedFiles(directory: string): UnfinishedFiles {
  return {
    async note(names, name) {
      await makeDirectory(directory)
      await writeFile(join(directory, name), names.join('/'), { mode: 0o600 })
    },
    forget: (name) => rm(join(directory, name), { force: true }),
    async sweep(jail) {
      for (const name of await namesIn(directory)) {
        await removeFrom(jail, await readFile(join(directory, name), 'utf8'), name)
        await rm(join(directory, name), { force: true })
      }
    },
  }
}

/** Does not create its parents: the directory of a conversation that is being deleted must not reappear. */
async function makeDirectory(path: string): Promise<void> {
  await mkdir(path, { mode: 0o700 }).catch((error: unknown) => {
    if (codeOf(error) !== 'EEXIST') throw error
  })
}

async function namesIn(directory: string): Promise<string[]> {
  try {
    return (await readdir(directory)).filter(isTemporaryName)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return []
    throw error
  }
}

/** It may be gone, with its directory, or with the workdir. */
async function removeFrom(jail: Jail, directory: string, name: string): Promise<void> {
  try {
    await using place = await openDirectoryIn(jail, parseJailPath(directory).names)
    await jail.io(() => unlink(entryPath(place, name)))
  } catch (error) {
    if (!(error instanceof Problem) && codeOf(error) !== 'ENOENT') throw error
  }
}
