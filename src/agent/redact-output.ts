/** Redacts the output of a tool: its texts, and images whose data has a secret. */
import type { UserPart } from '../contract/values/message.ts'
import { partsOfOutput } from '../contract/values/output-text.ts'
import { mapStrings } from '../lib/json/map-strings.ts'

/** An image that contains a secret is left out: redacting inside it would break it. */
export function redactOutput(output: unknown, redact: (text: string) => string): unknown {
  const parts = partsOfOutput(output)
  if (!parts) return mapStrings(output, redact)
  const isSafe = (part: UserPart) => part.type === 'text' || redact(part.data) === part.data
  return parts.map((part) => (isSafe(part) ? mapStrings(part, redact) : HIDDEN_IMAGE))
}

const HIDDEN_IMAGE: UserPart = {
  type: 'text',
  text: '[An image was left out because it contains the value of a secret.]',
}
