/** Redacts secret values in user input; images are left unchanged. */
import type { UserPart } from '../../contract/values/message.ts'
import type { Redactor } from '../../security/redaction/redactor.ts'

export function redactParts(parts: readonly UserPart[], redact: (text: string) => string): UserPart[] {
  return parts.map((part) => (part.type === 'text' ? { ...part, text: redact(part.text) } : part))
}

/** Redacts parts that may be long; yields to other work in between. */
export async function redactLongParts(
  parts: readonly UserPart[],
  redactInSlices: Redactor['redactInSlices'],
): Promise<UserPart[]> {
  const redactedParts: UserPart[] = []
  for (const part of parts)
    redactedParts.push(part.type === 'text' ? { ...part, text: await redactInSlices(part.text) } : part)
  return redactedParts
}
