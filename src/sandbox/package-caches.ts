/**
 * The caches of package managers that conversations of one person in one directory share: what they download, and not
 * their settings or the programs that they install, which would run in another conversation as they are.
 */
import { join } from 'node:path'
import { makeDirectories } from '../files/make-directories.ts'
import type { OpenedPath } from '../files/jail/opened-path.ts'
import type { HomeLinks } from './home-links.ts'
import { openOwnDirectory } from './mount-sources.ts'

/** Each is mounted by itself, so that no shell can replace one by a link to something else. */
const CACHES = ['npm', 'pip', 'cargo-registry', 'cargo-git']

/**
 * The places in the home where programs look for them. Conversations that share a registry of cargo share its locks.
 */
const LINKS: HomeLinks = {
  '.npm/_cacache': 'npm',
  '.cache/pip': 'pip',
  '.cargo/registry': 'cargo-registry',
  '.cargo/git': 'cargo-git',
  '.cargo/.package-cache': 'cargo-registry/.package-cache',
  '.cargo/.package-cache-mutate': 'cargo-registry/.package-cache-mutate',
}

/** `directory` belongs to the server, and no shell can write in it, only in the caches. */
export async function openCaches(directory: string): Promise<OpenedPath[]> {
  const openedCaches: OpenedPath[] = []
  try {
    for (const name of CACHES) {
      await makeDirectories(join(directory, name), 0o700)
      openedCaches.push(await openOwnDirectory(join(directory, name)))
    }
    return openedCaches
  } catch (error) {
    for (const { handle } of openedCaches) await handle.close()
    throw error
  }
}

export const cacheLinks = (directory: string): HomeLinks =>
  Object.fromEntries(Object.entries(LINKS).map(([name, cache]) => [name, join(directory, cache)]))
