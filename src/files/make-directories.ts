/**
 * Creates directories. Node's own `mkdir` with `recursive` loops forever if a file system refuses with ENOENT, as /proc
 * does: one request with such a path would cost the server a thread.
 */
import { mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

/** Creates `path` and its missing parents. Throws the system's error, EEXIST if it is not a directory. */
export async function makeDirectories(path: string, mode = 0o777): Promise<void> {
  const missing: string[] = []
  for (let at = path; !(await exists(at)); at = dirname(at)) missing.unshift(at)
  for (const at of missing) await mkdir(at, { mode }).catch(passOver('EEXIST'))
  if ((await stat(path)).isDirectory()) return
  throw Object.assign(new Error(`${path} is not a directory`), { code: 'EEXIST' })
}

const exists = (path: string) => stat(path).then(() => true, passOver('ENOENT'))

function passOver(code: string): (error: NodeJS.ErrnoException) => false {
  return (error) => {
    if (error.code === code) return false
    throw error
  }
}
