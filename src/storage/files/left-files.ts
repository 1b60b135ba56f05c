/** Removes the temporary files that a killed server has left in the data directory. Call it with the lock held. */
import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { isDraftName } from '../../lib/durable-file.ts'
import { codeOf } from '../../lib/error-code.ts'

/** What programs make before they know who holds the lock: the key, the list of hidden files, the filter of the sandbox. */
const OF_STARTING_PROGRAMS = /^(?:master-key\.|hidden-files\.|\.seccomp-)/
/** Longer than they exist, in milliseconds. */
const STARTING_MS = 60_000

/** See `readiness.ts`. */
const PROBE = '.ready'

/** Not those in directories. */
export async function removeLeftFiles(dataDir: string): Promise<void> {
  for (const name of await namesIn(dataDir)) {
    const path = join(dataDir, name)
    if (OF_STARTING_PROGRAMS.test(name)) {
      const { mtimeMs } = (await stat(path).catch(unlessMissing)) ?? { mtimeMs: Infinity }
      if (mtimeMs > Date.now() - STARTING_MS) continue
    } else if (name !== PROBE && !isDraftName(name)) continue
    await rm(path, { force: true })
  }
}

/** Those of replaced files, in the directory of a conversation and in directories in it. */
export async function removeDraftsIn(directory: string, inner: readonly string[] = []): Promise<void> {
  for (const name of await namesIn(directory)) {
    if (isDraftName(name)) await rm(join(directory, name), { force: true })
    else if (inner.includes(name)) await removeDraftsIn(join(directory, name))
  }
}

const namesIn = async (directory: string): Promise<string[]> => (await readdir(directory).catch(unlessMissing)) ?? []

function unlessMissing(error: unknown): undefined {
  if (!['ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '')) throw error
}
