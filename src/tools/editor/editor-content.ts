/**
 * Interprets the content of a file for the editor: text or an image, within limits, or the reason why it is neither.
 */
import type { UserPart } from '../../contract/values/message.ts'
import { imageType } from './image-type.ts'
import type { ImageType } from './image-type.ts'
import { decodeText, encodeText } from './text-encoding.ts'
import type { DecodedText } from './text-encoding.ts'
import type { FoundEntry, FoundFile } from '../../files/editor-files.ts'
import { EditorError, doesNotExist, isDirectory, isTooLarge, mebibytes } from './editor-faults.ts'
import type { ToolOutcome } from '../../state/tool-call.ts'

/** Larger files need other tools. */
export const MAX_FILE_BYTES = 10 * 1024 * 1024

/** An image is a third larger as base64, and providers accept no more than about five million characters. */
export const MAX_IMAGE_BYTES = 3 * 1024 * 1024

export function asFile(path: string, entry: FoundEntry, maxBytes = MAX_FILE_BYTES): FoundFile {
  switch (entry.kind) {
    case 'file':
      return entry
    case 'missing':
      throw doesNotExist(path)
    case 'directory':
      throw isDirectory(path)
    case 'special':
      throw new EditorError(`${path} is ${entry.what} and not a file; use Bash for it.`)
    case 'large':
      throw isTooLarge(path, entry.size, maxBytes)
  }
}

export function showImage(path: string, media_type: ImageType, bytes: Buffer): ToolOutcome {
  if (bytes.length > MAX_IMAGE_BYTES) {
    throw new EditorError(
      `The image ${path} is too large to be shown (${mebibytes(bytes.length)}; the limit is ${mebibytes(MAX_IMAGE_BYTES)}). Make a smaller copy and view that.`,
    )
  }
  const parts: UserPart[] = [
    {
      type: 'text',
      text: `Image file ${path} read successfully (${media_type}, ${bytes.length} bytes). Displaying image content.`,
    },
    { type: 'image', media_type, data: bytes.toString('base64') },
  ]
  return { output: parts }
}

export function decode(path: string, bytes: Buffer): DecodedText {
  const decodedText = imageType(bytes) ? undefined : decodeText(bytes)
  if (decodedText) return decodedText
  throw new EditorError(
    `${path} is a binary file, which this tool can neither show nor edit. Use Bash for it: file, xxd, or a program that knows its format.`,
  )
}

export function encode(path: string, decodedText: DecodedText): Buffer {
  const bytes = encodeText(decodedText)
  if (bytes) return bytes
  if (!decodedText.text.isWellFormed())
    throw new EditorError('The text holds half of a character (an unpaired surrogate); send it again.')
  throw new EditorError(
    `${path} is not UTF-8, so it is taken as ${decodedText.encoding}, in which the new text cannot be written. Use its characters, or convert the file first, e.g. with iconv.`,
  )
}
