/** Takes secret values out of what a user wrote; images are left as they are. */
import type { UserPart } from '../contract/message.ts'

export function redactParts(parts: readonly UserPart[], redact: (text: string) => string): UserPart[] {
  return parts.map((part) => (part.type === 'text' ? { ...part, text: redact(part.text) } : part))
}
