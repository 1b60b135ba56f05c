/** Removes a directory with all that is in it, also what its owner has made read-only (the module cache of Go, say). */
import { chmod, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

/** That there is nothing is fine. Links are removed, never followed. For directories that nobody else changes meanwhile. */
export async function removeTree(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true })
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code !== 'EACCES' && code !== 'EPERM' && code !== 'ENOTEMPTY') throw error
    await openDirectories(path)
    await rm(path, { recursive: true, force: true })
  }
}

async function openDirectories(path: string): Promise<void> {
  await chmod(path, 0o700)
  for (const entry of await readdir(path, { withFileTypes: true })) {
    if (entry.isDirectory()) await openDirectories(join(path, entry.name))
  }
}
