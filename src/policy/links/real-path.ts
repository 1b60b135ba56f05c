/** Resolves paths and follows links on the disk. Synchronous: the gate decides in the same turn in which the call begins. */
import { isUtf8 } from 'node:buffer'
import { lstatSync, opendirSync, readlinkSync, statSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { codeOf } from '../../lib/error-code.ts'

/** Links that the kernel follows at most. */
const MAX_LINKS = 40

/** What these lead to depends on the process that asks: for the shell it is another place than for this server. */
const OF_PROCESS = /^proc\/(self|thread-self|\d+)(\/task\/[^/]+)?\/(cwd|root|fd|exe|map_files)$/
const SELF = /^proc\/(self|thread-self)$/

/** The path as the kernel would find it. What does not exist yet stays as written; undefined when that is not certain. */
export function realPath(path: string): string | undefined {
  if (!path.startsWith('/') || path.includes('\0')) return undefined
  const remainingNames = path.split('/').toReversed()
  const names: string[] = []
  // What comes before the last `own` names is from the target of a link.
  let [exists, links, own] = [true, 0, remainingNames.length]
  try {
    for (let name = remainingNames.pop(); name !== undefined; name = remainingNames.pop()) {
      if (name === '' || name === '.') continue
      if (name === '..') {
        // The parent of something that does not exist is not known.
        if (!exists) return undefined
        names.pop()
        continue
      }
      names.push(name)
      const process = names[0] === 'proc' ? names.slice(0, 6).join('/') : ''
      if (OF_PROCESS.test(process)) return undefined
      if (!exists || SELF.test(process)) continue
      const stats = lstatSync(`/${names.join('/')}`, { throwIfNoEntry: false })
      // A link that leads nowhere.
      if (!stats && links > 0 && remainingNames.length >= own) return undefined
      exists = stats !== undefined
      if (!stats?.isSymbolicLink()) continue
      if ((links += 1) > MAX_LINKS) return undefined
      own = Math.min(own, remainingNames.length)
      const bytes = readlinkSync(`/${names.join('/')}`, { encoding: 'buffer' })
      // As text they would be the path of another file.
      if (!isUtf8(bytes)) return undefined
      const target = bytes.toString()
      if (target.startsWith('/')) names.length = 0
      else names.pop()
      remainingNames.push(...target.split('/').toReversed())
    }
    return `/${names.join('/')}`
  } catch {
    return undefined
  }
}

/** Returns true also if it is not certain, as for a link that leads to itself. */
export function isDirectory(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
  } catch {
    return true
  }
}

/** Looking at more would hold up the server. */
const MAX_ENTRIES = 2000

/** Returns true if a link is among what is in the directory; also if it is not certain. */
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

/** Resolves the model's path; a relative one begins at the workdir. */
export function absolutePath(workdir: string, path: string): string {
  const whole = isAbsolute(path) ? path : `${workdir}/${path}`
  // Do not normalise `..`: after a link, only the file system knows where it leads.
  return whole.split('/').includes('..') ? whole : join(whole)
}
