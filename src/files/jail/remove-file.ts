/** Removes files, links and directories of the workdir; never a link's target. */
import { chmod, opendir, rmdir, unlink } from 'node:fs/promises'
import { Problem } from '../../contract/problem.ts'
import { codeOf } from '../../lib/error-code.ts'
import { unsafePath } from './jail-path.ts'
import type { OpenedPath } from './opened-path.ts'
import type { Jail, FileName } from './path-jail.ts'
import {
  enter,
  entryPath,
  fileNotFound,
  look,
  openDirectoryIn,
  pathOf,
  refuseForbidden,
  syncOpened,
  withProblems,
} from './path-jail.ts'
import { etagOf } from './file-version.ts'
import type { Precondition } from '../write-file.ts'

/** Maximum directory depth: each level is held open while the next one is emptied. */
export const MAX_DEPTH = 256

export async function remove(
  jail: Jail,
  names: readonly string[],
  { recursive, precondition }: { recursive: boolean; precondition: Precondition },
): Promise<void> {
  const name = names.at(-1)
  if (name === undefined)
    throw new Problem(
      'invalid_request',
      'The working directory itself cannot be deleted; use the path of something inside it.',
    )
  await using parent = await openDirectoryIn(jail, names.slice(0, -1))
  await using entry = await look(jail, parent, name)
  if (!entry) throw fileNotFound()
  precondition(etagOf(entry.stats))
  refuseForbidden(jail, entry.path, 'write')
  if (entry.kind !== 'directory') await withProblems(() => jail.io(() => unlink(entryPath(parent, name))))
  else if (recursive) await removeDirectory(jail, parent, name, 0)
  else await removeEmpty(jail, parent, name)
  await syncOpened(jail, parent)
}

async function removeEmpty(jail: Jail, parent: OpenedPath, name: FileName): Promise<void> {
  try {
    await withProblems(() => jail.io(() => rmdir(entryPath(parent, name))))
  } catch (error) {
    if (codeOf(error) !== 'ENOTEMPTY' && codeOf(error) !== 'EEXIST') throw error
    throw new Problem('directory_not_empty', 'The directory is not empty; send recursive=true to remove all of it.', {
      cause: error,
    })
  }
}

async function removeDirectory(jail: Jail, parent: OpenedPath, name: FileName, depth: number): Promise<void> {
  if (depth > MAX_DEPTH) throw unsafePath(`it has more than ${MAX_DEPTH} levels`)
  if (jail.rules.holdsForbidden(pathOf(parent, name))) throw unsafePath('it contains files of the server')
  {
    await using directory = await enter(jail, parent, name)
    if (!directory) return
    await makeWritable(jail, directory)
    await emptyDirectory(jail, directory, depth)
  }
  await removeEmpty(jail, parent, name)
}

/** The owner may have removed the write permission, as the module cache of Go does. */
async function makeWritable(jail: Jail, directory: OpenedPath): Promise<void> {
  const { mode } = await jail.io(() => directory.handle.stat())
  if ((mode & 0o700) !== 0o700) await withProblems(() => jail.io(() => chmod(entryPath(directory, '.'), mode | 0o700)))
}

async function emptyDirectory(jail: Jail, directory: OpenedPath, depth: number): Promise<void> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types know of text only
  const options = { encoding: 'buffer' as never }
  const listing = await withProblems(() => jail.io(() => opendir(entryPath(directory, '.'), options)))
  try {
    for (;;) {
      const entry = await withProblems(() => jail.io(() => listing.read()))
      if (!entry) return
      await removeEntry(jail, directory, entry.name, depth)
    }
  } finally {
    await listing.close()
  }
}

/** The system reports the kind of entry at the removal itself. */
async function removeEntry(jail: Jail, directory: OpenedPath, name: FileName, depth: number): Promise<void> {
  try {
    await jail.io(() => unlink(entryPath(directory, name)))
  } catch (error) {
    const code = codeOf(error)
    if (code === 'ENOENT') return
    if (code !== 'EISDIR')
      return await withProblems(() => {
        throw error
      })
    await removeDirectory(jail, directory, name, depth + 1)
  }
}
