/** Parts of messages, from what clients send: text, and images in the request itself. */
import { ImagePart } from '../../contract/values/message.ts'
import type { UserPart } from '../../contract/values/message.ts'
import { invalid } from './fields.ts'

/** Empty for a text that says nothing. */
export const textParts = (text: string): UserPart[] =>
  /\S/.test(text) ? [{ type: 'text', text: text.toWellFormed() }] : []

/** Takes only data in the request itself: the server fetches no URL for a client. */
export function imageOf(url: unknown): UserPart {
  const [, media_type, data] = (typeof url === 'string' && /^data:([\w/+.-]+);base64,([\s\S]*)$/.exec(url)) || []
  const image = ImagePart.safeParse({ type: 'image', media_type, data })
  if (image.success) return image.data
  throw invalid(
    'image_url',
    'must be a data URL of a PNG, JPEG, GIF or WebP image in base64; remote URLs are not fetched',
  )
}
