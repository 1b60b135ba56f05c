/** Follows links on the disk. Synchronous: the gate decides in the same turn in which the call begins. */
import { lstatSync, opendirSync, realpathSync, statSync } from 'node:fs'
import { codeOf } from '../lib/error-code.ts'

/** The path as the kernel would find it. What does not exist yet stays as written; undefined when that is not certain. */
export function realPath(path: string): string | undefined {
  if (!path.startsWith('/') || path.includes('\0')) return undefined
  const names = path.split('/').filter((name) => name !== '' && name !== '.')
  try {
    const count = existingNames(names)
    const rest = names.slice(count)
    // `..` after something that does not exist.
    if (rest.includes('..')) return undefined
    // The native one: it goes up from where a link leads, as the kernel does. It throws for a link that leads nowhere.
    const real = realpathSync.native(`/${names.slice(0, count).join('/')}`)
    return rest.length === 0 ? real : `${real === '/' ? '' : real}/${rest.join('/')}`
  } catch {
    return undefined
  }
}

/** How many of the names exist, from the root on. From there, because a failed look-up is slow and many may be missing. */
function existingNames(names: readonly string[]): number {
  let at = ''
  for (const [count, name] of names.entries()) {
    at += `/${name}`
    if (!lstatSync(at, { throwIfNoEntry: false })) return count
  }
  return names.length
}

export function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}

/** Looking at more would hold up the server. */
const MAX_ENTRIES = 2000

/** Whether a link is among what is in the directory; also if it is not certain. */
export function holdsLinks(directory: string): boolean {
  try {
    using entries = opendirSync(directory)
    for (let count = 0; count < MAX_ENTRIES; count += 1) {
      const entry = entries.readSync()
      if (!entry) return false
      if (entry.isSymbolicLink()) return true
    }
    return true
  } catch (error) {
    return codeOf(error) !== 'ENOENT'
  }
}
