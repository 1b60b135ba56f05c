/** Takes secret values out of what a user wrote; images are left as they are. */
import type { UserPart } from '../../contract/message.ts'
import type { Redactor } from '../../security/redaction/redactor.ts'

export function redactParts(parts: readonly UserPart[], redact: (text: string) => string): UserPart[] {
  return parts.map((part) => (part.type === 'text' ? { ...part, text: redact(part.text) } : part))
}

/** The same for parts that may be long: other work has its turn in between. */
export async function redactLongParts(
  parts: readonly UserPart[],
  redactInSlices: Redactor['redactInSlices'],
): Promise<UserPart[]> {
  const redacted: UserPart[] = []
  for (const part of parts)
    redacted.push(part.type === 'text' ? { ...part, text: await redactInSlices(part.text) } : part)
  return redacted
}
