/**
 * Files with keys of the people who use a data directory, which no agent may read: the file `hidden-files` there, with a
 * JSON string on each line. Programs that use the server of another process add theirs. A file stays hidden until it is
 * removed: the agents that were meant may continue when the program has ended.
 */
import { readFileSync, statSync } from 'node:fs'
import { appendFile, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf } from '../lib/error-code.ts'
import { replaceFile } from '../lib/durable-file.ts'
import { makeDirectories } from '../files/make-directories.ts'

/** Further files are forgotten, the oldest first: each new shell looks at all of them. */
const MAX_FILES = 200

const pathIn = (dataDir: string): string => join(dataDir, 'hidden-files')

/** Adds those that exist, by their real path. Shells that run already see what they saw. Throws if it cannot be written. */
export async function hideFiles(dataDir: string, files: readonly string[]): Promise<void> {
  const real = await Promise.all(files.map((file) => realpath(file).catch(() => ''))) // a pipe between programs
  const foundPaths = real.filter((file) => file !== '')
  if (foundPaths.length === 0) return
  const knownPaths = read(dataDir)
  const addedPaths = [...new Set(foundPaths)].filter((file) => !knownPaths.includes(file))
  if (addedPaths.length === 0) return
  await makeDirectories(dataDir, 0o700)
  const path = pathIn(dataDir)
  const all = [...knownPaths, ...addedPaths]
  if (all.length > MAX_FILES) await replaceFile(path, linesOf(all.filter(exists).slice(-MAX_FILES / 2)))
  else await appendFile(path, linesOf(addedPaths), { mode: 0o600 }) // another program may append at the same time
}

const linesOf = (files: readonly string[]): string => files.map((file) => `${JSON.stringify(file)}\n`).join('')

const exists = (file: string): boolean => statSync(file, { throwIfNoEntry: false }) !== undefined

/** Returns a function that returns those that are hidden now. It reads the file only if it has changed. */
export function hiddenFilesIn(dataDir: string): () => readonly string[] {
  let files: readonly string[] = []
  let version = ''
  return () => {
    const stats = statSync(pathIn(dataDir), { throwIfNoEntry: false, bigint: true })
    const now = stats ? `${stats.ino} ${stats.size} ${stats.mtimeNs}` : ''
    if (now !== version) [files, version] = [read(dataDir), now]
    return files
  }
}

function read(dataDir: string): string[] {
  try {
    return readFileSync(pathIn(dataDir), 'utf8').split('\n').flatMap(fileOf).slice(-MAX_FILES)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return []
    throw error
  }
}

/** The last line may be incomplete. */
function fileOf(line: string): string[] {
  try {
    const file: unknown = JSON.parse(line)
    return typeof file === 'string' && file.startsWith('/') ? [file] : []
  } catch {
    return []
  }
}
