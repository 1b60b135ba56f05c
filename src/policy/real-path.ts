/** Follows links on the disk. Synchronous: the gate decides in the same turn in which the call begins. */
import { opendirSync, readlinkSync, realpathSync, statSync } from 'node:fs'
import { codeOf } from '../lib/error-code.ts'

/** The path as the kernel would find it. What does not exist yet stays as written; undefined when that is not certain. */
export function realPath(path: string): string | undefined {
  if (!path.startsWith('/') || path.includes('\0')) return undefined
  let [known, rest] = [path, '']
  for (;;) {
    try {
      // The native one: it goes up from where a link leads, as the kernel does.
      const real = realpathSync.native(known || '/')
      return rest === '' ? real : `${real === '/' ? '' : real}${rest}`
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') return undefined
      const slash = known.lastIndexOf('/')
      const name = known.slice(slash)
      // `..` after something that does not exist; and a link that leads nowhere may lead somewhere soon.
      if (slash < 0 || name === '/..' || isLink(known)) return undefined
      known = known.slice(0, slash)
      rest = name === '/' || name === '/.' ? rest : `${name}${rest}`
    }
  }
}

function isLink(path: string): boolean {
  try {
    readlinkSync(path)
    return true
  } catch {
    return false
  }
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
