/** The directory of one demo. The next demo removes those of demos that were killed. */
import { lstat, mkdtemp, readdir, realpath } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readLocalRecord } from '../../access/local-record.ts'
import { removeTree } from '../../files/trees/remove-tree.ts'
import { isListenedAt } from '../../http/local/local-socket.ts'

const UNIX = 'unix:'
const PREFIX = 'agent-server-demo-'

/** The server of a demo that has just made its directory does not listen yet; in milliseconds. */
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
  const stats = await lstat(home)
  const isOwn = stats.isDirectory() && stats.uid === process.geteuid?.()
  if (!isOwn || stats.mtimeMs > Date.now() - STARTING_MS) return
  if (!(await isInUse(dataIn(home)))) await removeTree(home)
}

/** Returns true also if that is unknown. */
async function isInUse(dataDir: string): Promise<boolean> {
  const record = await readLocalRecord(dataDir)
  if (!record) return false
  if (!('address' in record) || !record.address.startsWith(UNIX)) return true
  return await isListenedAt(record.address.slice(UNIX.length))
}
