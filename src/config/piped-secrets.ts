/** The secrets that `NAME_FILE` variables read from pipes: a pipe can be read only once, and settings are read more often. */
import { realpathSync } from 'node:fs'
import { resolve } from 'node:path'
import { isPipe, readSmallFile, readSmallFileSync } from '../files/small-file.ts'

/** The secrets by path, for the life of the process. */
const keptSecrets = new Map<string, Buffer>()

/** Throws an error that `whyUnreadable` describes. Blocks while a pipe has no end, unless `readPipe` has read it. */
export function readSecretBytes(path: string): Buffer {
  const keptSecret = keptSecrets.get(resolve(path))
  if (keptSecret) return keptSecret
  const isOnce = isPipe(path)
  const bytes = readSmallFileSync(path)
  if (isOnce) keptSecrets.set(resolve(path), bytes)
  return bytes
}

/** Reads a pipe without blocking; does nothing for another file. Throws the same errors, and the reason of the signal. */
export async function readPipe(path: string, signal: AbortSignal): Promise<void> {
  if (!keptSecrets.has(resolve(path)) && isPipe(path)) keptSecrets.set(resolve(path), await readSmallFile(path, signal))
}

/** The real path of a file with a secret, to hide it; undefined for a missing one, and for a pipe between programs. */
export function secretPathOf(path: string): string | undefined {
  try {
    return realpathSync(path)
  } catch {
    return undefined
  }
}
