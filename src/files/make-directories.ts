/**
 * Creates directories with their missing parents. Node's own `mkdir` with `recursive` does not say why it fails: for a
 * read-only disk and an exceeded quota it throws ENOENT. And it loops forever if a file system refuses with ENOENT, as /proc
 * does: one request with such a path would cost the server a thread.
 */
import { mkdirSync, statSync } from 'node:fs'
import { mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { codeOf } from '../lib/error-code.ts'

/**
 * Returns the topmost directory that was created; undefined if all exist. Throws the system's error, EEXIST if `path` is
 * not a directory.
 */
export async function makeDirectories(path: string, mode = 0o777): Promise<string | undefined> {
  try {
    return await makeDirectory(path, mode)
  } catch (error) {
    if (codeOf(error) !== 'ENOENT' || dirname(path) === path) throw error
    const topmost = await makeDirectories(dirname(path), mode)
    const createdPath = await makeDirectory(path, mode)
    return topmost ?? createdPath
  }
}
/** The same at once, without giving way to other work. */
export function makeDirectoriesSync(path: string, mode = 0o777): void {
  const isThere = () => statSync(path, { throwIfNoEntry: false })?.isDirectory()
  if (isThere()) return
  // Ends at the root, which is there.
  makeDirectoriesSync(dirname(path), mode)
  try {
    mkdirSync(path, { mode })
  } catch (error) {
    if (!isThere()) throw error
  }
}

/** Returns the path if it was created. */
async function makeDirectory(path: string, mode: number): Promise<string | undefined> {
  try {
    await mkdir(path, { mode })
    return path
  } catch (error) {
    const stats = codeOf(error) === 'ENOENT' ? undefined : await stat(path).catch(() => undefined)
    if (!stats?.isDirectory()) throw error
    return undefined
  }
}
