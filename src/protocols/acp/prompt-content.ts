/** What an editor sends as a prompt, as the parts of a message: text, images, files that it has read, and links. */
import type { ContentBlock } from '@agentclientprotocol/sdk'
import { RequestError } from '@agentclientprotocol/sdk'
import { fileURLToPath } from 'node:url'
import { ImagePart, type UserPart } from '../../contract/values/message.ts'
import { fence } from './call-form.ts'

/** Throws a `RequestError` for what the agent cannot read. Parts without text are left out. */
export function partsOfPrompt(blocks: readonly ContentBlock[]): UserPart[] {
  const parts = blocks.map(partOf).filter((part) => part.type !== 'text' || /\S/.test(part.text))
  if (parts.length === 0) throw RequestError.invalidParams(undefined, 'the prompt is empty')
  return parts
}

function partOf(block: ContentBlock): UserPart {
  switch (block.type) {
    case 'text':
      return { type: 'text', text: block.text }
    case 'image':
      return imageOf(block.mimeType, block.data)
    case 'resource_link':
      return { type: 'text', text: `[${block.title ?? block.name}](${placeOf(block.uri)})` }
    case 'resource': {
      const { resource } = block
      if ('text' in resource) return { type: 'text', text: `${placeOf(resource.uri)}:\n${fence(resource.text)}` }
      if (resource.mimeType?.startsWith('image/')) return imageOf(resource.mimeType, resource.blob)
      throw RequestError.invalidParams(
        undefined,
        `${resource.uri} is neither text nor an image; send a link to the file instead`,
      )
    }
    default:
      throw RequestError.invalidParams(undefined, `content of the type ${block.type} is not supported`)
  }
}

function imageOf(mimeType: string, data: string): UserPart {
  const { success, data: image } = ImagePart.safeParse({ type: 'image', media_type: mimeType, data })
  if (success) return image
  throw RequestError.invalidParams(undefined, 'an image must be a PNG, JPEG, GIF or WebP in base64')
}

/** The path of a file, as the tools of the agent take it. */
function placeOf(uri: string): string {
  try {
    return uri.startsWith('file://') ? fileURLToPath(uri) : uri
  } catch {
    return uri
  }
}
