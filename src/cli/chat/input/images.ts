/** Images that a message names by their path: they are read on this machine and sent with the message. */
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { homedir } from 'node:os'
import { isAbsolute, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ImagePart, UserPart } from '../../../contract/message.ts'

export type MessageWithImages = {
  readonly parts: UserPart[]
  /** What was attached, or why not. */ readonly notes: readonly string[]
}

/** Larger images are refused by the providers. */
const MAX_IMAGE_BYTES = 5 * 1024 * 1024
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
    const image = await readImage(resolvePath(path, directory)).catch((error: unknown) => reasonOf(error))
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

async function readImage(path: string): Promise<ImagePart | string> {
  // Without O_NONBLOCK, a pipe that nobody writes to would hold the message forever.
  await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  if (!(await file.stat()).isFile()) return 'it is not a file'
  const buffer = Buffer.alloc(MAX_IMAGE_BYTES + 1)
  const { bytesRead } = await file.read(buffer, 0, buffer.length, 0)
  if (bytesRead > MAX_IMAGE_BYTES) return `it has more than ${MAX_IMAGE_BYTES / 1024 / 1024} MiB`
  const bytes = buffer.subarray(0, bytesRead)
  const media_type = mediaTypeOf(bytes)
  return media_type
    ? { type: 'image', media_type, data: bytes.toString('base64') }
    : 'it is not a PNG, JPEG, GIF or WebP image'
}

function mediaTypeOf(bytes: Buffer): ImagePart['media_type'] | undefined {
  const start = bytes.toString('latin1', 0, 12)
  if (start.startsWith('\x89PNG')) return 'image/png'
  if (start.startsWith('\xff\xd8\xff')) return 'image/jpeg'
  if (start.startsWith('GIF8')) return 'image/gif'
  return /^RIFF[\s\S]{4}WEBP$/.test(start) ? 'image/webp' : undefined
}

function reasonOf(error: unknown): string {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT' ? 'there is no such file' : String(error)
}
