/**
 * Refuses secret values in fields that are stored verbatim: storing them would leak the secret, and redacting them
 * would break the field.
 */
import { Problem } from '../contract/problem.ts'
import { mapStrings } from '../lib/json/map-strings.ts'

/** Throws a `Problem` that names the field but quotes none of its text. */
export function refuseSecretsIn(fields: Readonly<Record<string, unknown>>, redact: (text: string) => string): void {
  for (const [field, value] of Object.entries(fields)) {
    if (mapStrings(value, redact) === value) continue
    throw new Problem(
      'invalid_request',
      `${field} contains the value of a secret, which everyone who can read the conversation would see. Put model credentials into llm_config.api_key or llm_config.extra_headers, and what commands need into secrets.`,
    )
  }
}
