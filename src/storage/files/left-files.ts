/** Removes the temporary files that a killed server has left in the data directory. Call it with the lock held. */
import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { isDraftName } from '../../lib/durable-file.ts'
import { ignoring } from '../../lib/error-code.ts'

/**
 * The names of the files that are removed, and no others: people keep files there, too, such as a `master-key.new` of
 * theirs. `.ready` is that of `readiness.ts`, and `summaries` the cache of earlier versions.
 */
const FIXED =
  /^(?:(?:version|tables\.db|keys\.json|local\.json|firehose-heads|database)\.(?:new|draft)|summaries(?:\.(?:new|draft))?|\.ready)$/
const RANDOM = /^(?:data-keys|hidden-files|master-key)\.(?:[0-9a-f]{12}|[0-9a-f-]{36})(?:\.new)?$/
const OF_SANDBOX = /^\.seccomp-[0-9a-f-]{36}$/

/** Programs make some before they know who holds the lock. Longer than these exist, in milliseconds. */
const STARTING_MS = 60_000

/** Leaves those in directories. */
export async function removeLeftFiles(dataDir: string): Promise<void> {
  for (const name of await namesIn(dataDir)) {
    const path = join(dataDir, name)
    if (FIXED.test(name)) await rm(path, { force: true })
    else if (RANDOM.test(name) || OF_SANDBOX.test(name)) await removeIfOld(path)
  }
}

async function removeIfOld(path: string): Promise<void> {
  const stats = await stat(path).catch(ignoring('ENOENT', 'ENOTDIR'))
  if (stats && stats.mtimeMs < Date.now() - STARTING_MS) await rm(path, { force: true })
}

/** Removes drafts of replaced files, in the directory of a conversation and in directories in it. */
export async function removeDraftsIn(directory: string, inner: readonly string[] = []): Promise<void> {
  for (const name of await namesIn(directory)) {
    if (isDraftName(name)) await rm(join(directory, name), { force: true })
    else if (inner.includes(name)) await removeDraftsIn(join(directory, name))
  }
}

const namesIn = async (directory: string): Promise<string[]> =>
  (await readdir(directory).catch(ignoring('ENOENT', 'ENOTDIR'))) ?? []
