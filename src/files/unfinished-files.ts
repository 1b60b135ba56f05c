/** Which files are on their way in: what a killed server has left of them is found again, for nobody else sees it. */
import { mkdir, readFile, readdir, rm, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Problem } from '../contract/problem.ts'
import { codeOf } from '../lib/error-code.ts'
import { parseJailPath } from './jail-path.ts'
import type { Jail } from './path-jail.ts'
import { entryPath, openDirectoryIn } from './path-jail.ts'

const TEMPORARY_NAME = /^\.upload-[0-9a-f]{16}\.tmp$/

/** Whether this is the name of what has not come in whole yet. */
export const isTemporaryName = (name: string): boolean => TEMPORARY_NAME.test(name)

export interface UnfinishedFiles {
  /** Before there is anything of that name in that directory of the workdir. */
  readonly note: (directory: readonly string[], name: string) => Promise<void>
  readonly forget: (name: string) => Promise<void>
  /** Removes what an earlier server has left. Comes before anything is noted. */
  readonly sweep: (jail: Jail) => Promise<void>
}

/** `directory` is the server's own, for one conversation; it is made when it is needed. */
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

/** Not what is above it: that of a conversation which is being deleted must not come back. */
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
