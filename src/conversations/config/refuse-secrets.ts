/** For what has to be used as it is: kept, it would give a secret away, and without the secret it would not work. */
import { Problem } from '../../contract/problem.ts'
import { mapStrings } from '../../lib/json/map-strings.ts'

/** Throws a `Problem` that names the field, and none of it. */
export function refuseSecretsIn(fields: Readonly<Record<string, unknown>>, redact: (text: string) => string): void {
  for (const [field, value] of Object.entries(fields)) {
    if (mapStrings(value, redact) === value) continue
    throw new Problem(
      'invalid_request',
      `${field} holds the value of a secret, and everybody who sees the conversation would see it. Credentials of a model belong in llm_config.api_key or extra_headers.`,
    )
  }
}
