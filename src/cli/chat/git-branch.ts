/** The branch of a directory on this machine, from the files of git: no program runs, which a repository could configure. */
import { lstat, readFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'

const BRANCH = /^ref: refs\/heads\/(.+)$/
const COMMIT = /^([0-9a-f]{7})[0-9a-f]{33,57}$/
/** Git writes less there. */
const MAX_BYTES = 4096

/** Returns the branch, or the beginning of the commit; undefined outside a repository. Never throws. */
export async function branchOf(directory: string): Promise<string | undefined> {
  for (let at = directory; ; at = dirname(at)) {
    const head = await headOf(join(at, '.git'))
    if (head !== undefined) return BRANCH.exec(head)?.[1] ?? COMMIT.exec(head)?.[1]
    if (at === dirname(at)) return undefined
  }
}

/** Follows `.git`, which is a file that names the directory in a worktree and a submodule. */
async function headOf(git: string): Promise<string | undefined> {
  const link = await textOf(git)
  const namedDirectory = link === undefined ? undefined : /^gitdir: (.+)$/.exec(link)?.[1]
  return await textOf(join(namedDirectory === undefined ? git : resolve(dirname(git), namedDirectory), 'HEAD'))
}

/** A pipe would never end. */
async function textOf(path: string): Promise<string | undefined> {
  try {
    const stats = await lstat(path)
    return stats.isFile() && stats.size <= MAX_BYTES ? (await readFile(path, 'utf8')).trim() : undefined
  } catch {
    return undefined // there is no such file
  }
}
