/**
 * Parses a client's path: decodes its text once, into names that cannot leave the workdir. Every name that can exist on
 * disk is accepted, so that each listed file can be requested; new files with ambiguous names are refused.
 */
import { Problem } from '../../contract/problem.ts'

/** Bytes of one name: the limit of Linux. */
const MAX_NAME_BYTES = 255
/** Bytes of a whole path. */
const MAX_PATH_BYTES = 4096

export type JailPath = {
  /** Relative to the workdir; empty for the workdir itself. */
  readonly names: readonly string[]
  /** The names joined by slashes. */
  readonly text: string
  /** True if it was written as a directory, with a trailing slash. */
  readonly endsInSlash: boolean
}

/** Decoding these twice would result in another path. */
const ENCODED_AGAIN = /%(?:25)*(?:00|2e|2f|5c)/i

/** Parses decoded text. `.` is ignored; a trailing slash is allowed. Throws a `Problem`. */
export function parseJailPath(text: string): JailPath {
  if (text.includes('\0')) throw unsafePath('it contains a NUL character')
  if (!text.isWellFormed()) throw unsafePath('it is not valid Unicode')
  if (text.startsWith('/')) throw unsafePath('it is absolute; paths are relative to the workdir')
  if (Buffer.byteLength(text) > MAX_PATH_BYTES) throw unsafePath(`it has more than ${MAX_PATH_BYTES} bytes`)
  const endsInSlash = text.endsWith('/')
  const parts = text === '' ? [] : text.slice(0, endsInSlash ? -1 : undefined).split('/')
  for (const part of parts) {
    if (part === '') throw unsafePath('it contains an empty name')
    if (part === '..') throw unsafePath('it contains ..')
    if (Buffer.byteLength(part) > MAX_NAME_BYTES) throw unsafePath(`a name in it has more than ${MAX_NAME_BYTES} bytes`)
  }
  const names = parts.filter((part) => part !== '.')
  return { names, text: names.join('/'), endsInSlash }
}

/**
 * Returns the path in a URL as the client sent it, after `partsBefore` parts. An encoded slash separates names like a
 * plain one: generated clients encode the slashes of a parameter. The router's own decoding is not used.
 */
export function jailPathOfUrl(url: string, partsBefore: number): JailPath {
  // The request target may be an absolute URL; skip everything before its path.
  const [path = ''] = url.replace(/^https?:\/\/[^/?#]*/i, '').split(/[?#]/, 1)
  const parts = path.split('/').slice(partsBefore + 1)
  return parseJailPath(decodeOnce(parts.join('/')))
}

/**
 * Refuses to create a file with this name: the client has encoded the path twice, or separates names by backslashes,
 * and means another one. Commands may have created such files; these can be read by name.
 */
export function refuseToMake(name: string): void {
  if (name.includes('\\')) throw unsafePath('a new name in it contains a backslash; names are separated by /')
  if (ENCODED_AGAIN.test(name)) throw unsafePath('a new name in it is encoded twice')
}

function decodeOnce(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch (cause) {
    throw new Problem('unsafe_path', 'The path is refused: it is not valid percent-encoding.', { cause })
  }
}

export const unsafePath = (why: string) => new Problem('unsafe_path', `The path is refused: ${why}.`)
