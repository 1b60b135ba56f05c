/** Completes absolute paths in the additional directories of the agent, which must be on this machine. */
import { opendir } from 'node:fs/promises'

const FOUND_FILES = 20
/** The entries that are read in one directory. */
const MAX_ENTRIES = 1000

/** Directories end in `/`. Empty for a path elsewhere, and for one that cannot be read. */
export async function findAddedFiles(part: string, directories: readonly string[]): Promise<readonly string[]> {
  const roots = directories.map((each) => `${each}/`)
  const parent = part.slice(0, part.lastIndexOf('/') + 1)
  const isInside = roots.some((root) => parent.startsWith(root)) && !part.includes('/../')
  if (!isInside) return roots.filter((root) => root.startsWith(part))
  const foundPaths: string[] = []
  let readCount = 0
  for await (const entry of await opendir(parent)) {
    if (++readCount > MAX_ENTRIES || foundPaths.length >= FOUND_FILES) break
    const path = parent + entry.name
    if (path.startsWith(part)) foundPaths.push(entry.isDirectory() ? `${path}/` : path)
  }
  return foundPaths.toSorted()
}
