/** Follows links on the disk. Synchronous: the gate decides in the same turn in which the call begins. */
import { readlinkSync, realpathSync } from 'node:fs'
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
