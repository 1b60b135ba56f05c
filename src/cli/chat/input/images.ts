/** Images that a message names by their path: they are read on this machine and sent with the message. */
import { homedir } from 'node:os'
import { isAbsolute, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ImagePart, UserPart } from '../../../contract/values/message.ts'
import { readImage } from '../../conversation/read-image.ts'

export type MessageWithImages = {
  readonly parts: UserPart[]
  /** What was attached, or why not. */ readonly notes: readonly string[]
}

const MAX_IMAGES = 10
const MAX_PATH_CHARS = 4096

/**
 * A path in quotes, or without spaces except after a backslash, as terminals paste dropped files. The repetition is
 * limited, for V8 keeps each turn of it on a stack: a word of millions of characters would be an error.
 */
const WORDS = /"([^"\n]+)"|'([^'\n]+)'|((?:\\.|[^\s\\"']){1,4096})[^\s"']*/g
const PUNCTUATION = /(?<![,.;:!?)])[,.;:!?)]+$/
/** A name alone, as in "draw logo.png", is not a path. */
const PATH = /^(?:@|\/|~\/|\.\.?\/|file:\/\/).*\.(?:png|jpe?g|gif|webp)$/i

export async function withImages(text: string, directory: string): Promise<MessageWithImages> {
  const images: ImagePart[] = []
  const notes: string[] = []
  for (const path of imagePaths(text)) {
    const image = await readImage(resolvePath(path, directory))
    if (typeof image === 'object') images.push(image)
    notes.push(typeof image === 'object' ? `Attached ${path}.` : `${path} is not attached: ${image}.`)
  }
  return { parts: [{ type: 'text', text }, ...images], notes }
}

function imagePaths(text: string): ReadonlySet<string> {
  const paths = new Set<string>()
  for (const [word, double, single, bare = ''] of text.matchAll(WORDS)) {
    if (paths.size === MAX_IMAGES) break
    if (word.length > MAX_PATH_CHARS) continue
    const path = double ?? single ?? bare.replace(PUNCTUATION, '').replaceAll(/\\(.)/g, '$1')
    if (PATH.test(path)) paths.add(path)
  }
  return paths
}

function resolvePath(path: string, directory: string): string {
  if (path.startsWith('file://')) return fileURLToPath(path)
  const name = path.replace(/^@/, '')
  if (name.startsWith('~/')) return join(homedir(), name.slice(2))
  return isAbsolute(name) ? name : resolve(directory, name)
}
