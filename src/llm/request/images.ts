/** Replaces images by a note, for models that do not support them. */
import type { ImagePart, UserPart } from '../../contract/values/message.ts'

export function withoutImage(part: UserPart): Exclude<UserPart, ImagePart> {
  if (part.type === 'text') return part
  return {
    type: 'text',
    text: `[An image (${part.media_type}) was left out because this model does not support images.]`,
  }
}

/**
 * How endpoints report that they, or their model, do not support images, or not this one. The last two are messages of
 * servers that do not support content parts.
 */
export const NO_IMAGES = /image|\bvision\b|multi-?modal|content must be a string|content.{0,40}invalid type: sequence/i
