/** The directory of one demo. The next demo removes those of demos that were killed. */
import { lstat, mkdtemp, readdir, realpath } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { removeTree } from '../files/trees/remove-tree.ts'
import { lockDataDirectory } from '../storage/files/data-lock.ts'

const PREFIX = 'agent-server-demo-'

/** A demo that has just made its directory has not locked it yet; in milliseconds. */
const STARTING_MS = 60_000

export type DemoHome = AsyncDisposable & { readonly dataDir: string; readonly workdirBase: string }

export async function makeDemoHome(): Promise<DemoHome> {
  const temporary = await realpath(tmpdir())
  for (const name of await readdir(temporary)) {
    // It may be another user's, or gone.
    if (name.startsWith(PREFIX)) await removeIfLeft(join(temporary, name)).catch(() => {})
  }
  const home = await mkdtemp(join(temporary, PREFIX))
  return {
    dataDir: dataIn(home),
    workdirBase: join(home, 'work'),
    [Symbol.asyncDispose]: () => removeTree(home),
  }
}

const dataIn = (home: string): string => join(home, 'data')

async function removeIfLeft(home: string): Promise<void> {
  const found = await lstat(home)
  const isOwn = found.isDirectory() && found.uid === process.geteuid?.()
  if (!isOwn || found.mtimeMs > Date.now() - STARTING_MS) return
  // Throws while its demo runs.
  await using _lock = await lockDataDirectory(dataIn(home))
  await removeTree(home)
}
