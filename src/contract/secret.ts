/**
 * A conversation's secrets on the wire: values are written and never returned. No message here quotes a name or a
 * value.
 */
import { z } from 'zod'
import { faultOfName, MAX_NAME_LENGTH, VARIABLE_NAME } from './values/environment-variables.ts'
import { OnlyPage } from './values/page.ts'

/**
 * Characters. A shorter value would be found in innocent text, and could be guessed from the places where it was
 * redacted.
 */
export const MIN_SECRET_LENGTH = 8
/** Bytes per value. The kernel accepts no environment variable above 128 KiB. */
export const MAX_SECRET_BYTES = 32 * 1024
/** The limit per conversation; even with the longest values, the environment has room for everything else. */
export const MAX_SECRETS = 64
/** Name -> value, as a client sends them. Errors are reported by position: a name may contain a value by mistake. */
export const Secrets = z
  .record(z.string(), z.string())
  .check(({ value, issues }) => {
    Object.entries(value).forEach(([name, text], at) => {
      const fault = faultOfName(name) ?? faultOfValue(text)
      if (fault) issues.push({ code: 'custom', input: undefined, path: [], message: `entry ${at + 1}: ${fault}` })
    })
    if (Object.keys(value).length > MAX_SECRETS) {
      issues.push({ code: 'custom', input: undefined, path: [], message: `at most ${MAX_SECRETS} are allowed` })
    }
  })
  .meta({
    // A schema counts characters, and the server UTF-16 units: a character has at most two.
    propertyNames: { type: 'string', pattern: VARIABLE_NAME.source, maxLength: MAX_NAME_LENGTH },
    additionalProperties: { type: 'string', minLength: MIN_SECRET_LENGTH / 2, maxLength: MAX_SECRET_BYTES },
    maxProperties: MAX_SECRETS,
  })
  .describe(
    `Environment variables of the conversation's commands, by name. Values have ${MIN_SECRET_LENGTH} characters to ${MAX_SECRET_BYTES / 1024} KiB; names that bash, git or the server use are refused.`,
  )
export type Secrets = z.infer<typeof Secrets>

export const PutSecrets = z
  .strictObject({ secrets: Secrets })
  .meta({ id: 'PutSecrets', examples: [{ secrets: { GITHUB_TOKEN: 'ghp_example-value' } }] })

/** A list like any other, with only one page. */
export const SecretNames = z
  .object({ items: z.array(z.string()).describe('Names, sorted.'), next_page_id: OnlyPage })
  .meta({ id: 'SecretNames', examples: [{ items: ['DB_URL', 'GITHUB_TOKEN'], next_page_id: null }] })
export type SecretNames = z.infer<typeof SecretNames>

function faultOfValue(value: string): string | undefined {
  if (value.includes('\0')) return 'a value must not contain a NUL character'
  // Do not count white space that editors and `echo` add, and that commands often remove again.
  if (value.trim().length < MIN_SECRET_LENGTH) {
    return `a value must have at least ${MIN_SECRET_LENGTH} characters; a shorter one could not be redacted reliably`
  }
  if (new TextEncoder().encode(value).length > MAX_SECRET_BYTES)
    return `a value can have at most ${MAX_SECRET_BYTES} bytes`
  return undefined
}
