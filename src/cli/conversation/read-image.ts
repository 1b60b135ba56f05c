/** Reads an image of this machine as a part of a message. */
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import type { ImagePart } from '../../contract/values/message.ts'

/** Larger images are refused by the providers. */
const MAX_IMAGE_BYTES = 5 * 1024 * 1024

/** Returns the reason if it cannot be sent. */
export const readImage = (path: string): Promise<ImagePart | string> =>
  imageIn(path).catch((error: unknown) => reasonOf(error))

async function imageIn(path: string): Promise<ImagePart | string> {
  // A pipe that nobody writes to would hold the message forever without O_NONBLOCK.
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
