/**
 * What a client may call a path: its text, decoded once, into names that cannot leave the workdir. Each name that a file
 * can have on disk is one, so that what is listed can be asked for; names that could mean two things are not made.
 */
import { Problem } from '../contract/problem.ts'

/** Of one name, bytes: what Linux takes. */
const MAX_NAME_BYTES = 255
/** Of a whole path, bytes. */
const MAX_PATH_BYTES = 4096

export type JailPath = {
  /** From the workdir on; none for the workdir itself. */
  readonly names: readonly string[]
  /** The names with slashes between them. */
  readonly text: string
  /** Whether it was written as a directory's, with a slash at its end. */
  readonly endsInSlash: boolean
}

/** Who decodes twice makes another path of it. */
const ENCODED_AGAIN = /%(25)*(00|2e|2f|5c)/i

/** `text` as it is meant, not encoded any more. `.` is nothing; a slash at the end is fine. Throws a `Problem`. */
export function parseJailPath(text: string): JailPath {
  if (text.includes('\0')) throw unsafePath('it contains a NUL character')
  if (!text.isWellFormed()) throw unsafePath('it is no valid Unicode')
  if (text.startsWith('/')) throw unsafePath('it is absolute; paths begin at the workdir')
  if (Buffer.byteLength(text) > MAX_PATH_BYTES) throw unsafePath(`it has more than ${MAX_PATH_BYTES} bytes`)
  const endsInSlash = text.endsWith('/')
  const parts = text === '' ? [] : text.slice(0, endsInSlash ? -1 : undefined).split('/')
  for (const part of parts) {
    if (part === '') throw unsafePath('it has an empty name in it')
    if (part === '..') throw unsafePath('it has .. in it')
    if (Buffer.byteLength(part) > MAX_NAME_BYTES) throw unsafePath(`a name in it has more than ${MAX_NAME_BYTES} bytes`)
  }
  const names = parts.filter((part) => part !== '.')
  return { names, text: names.join('/'), endsInSlash }
}

/**
 * The path in a URL as the client sent it, behind so many of its parts. An encoded slash parts names as one that is not
 * does: generated clients encode those of a parameter. What the router made of the URL is not looked at.
 */
export function jailPathOfUrl(url: string, partsBefore: number): JailPath {
  // A target may be a whole URL; what comes before its path is not ours.
  const [path = ''] = url.replace(/^https?:\/\/[^/?#]*/i, '').split(/[?#]/, 1)
  const parts = path.split('/').slice(partsBefore + 1)
  return parseJailPath(decodeOnce(parts.join('/')))
}

/**
 * Refuses to make something of this name: the client has encoded the path twice, or parts its names by backslashes, and
 * means another one. A command may well have made one; that is found by its name.
 */
export function refuseToMake(name: string): void {
  if (name.includes('\\')) throw unsafePath('a new name in it holds a backslash; names are parted by /')
  if (ENCODED_AGAIN.test(name)) throw unsafePath('a new name in it is encoded twice')
}

function decodeOnce(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch (cause) {
    throw new Problem('unsafe_path', 'The path is refused: it is not encoded as paths in URLs are.', { cause })
  }
}

export const unsafePath = (why: string) => new Problem('unsafe_path', `The path is refused: ${why}.`)
