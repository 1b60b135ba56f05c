/** The secret parts of an HTTP header. */

/**
 * These headers contain ordinary words that would be redacted in the agent's own work. Any other header may hold a
 * credential.
 */
const PLAIN_HEADER =
  /^(accept|accept-.*|content-.*|user-agent|referer|http-referer|origin|x-title|x-openrouter-title|.*-version|.*-beta)$/i

/** Returns the secret parts of a header. An echo may omit the word before a credential. */
export function secretsInHeader(name: string, value: string): string[] {
  if (PLAIN_HEADER.test(name)) return []
  const credential = /^[A-Za-z-]+\s+(\S.*)$/.exec(value)?.[1]
  return credential === undefined ? [value] : [value, credential]
}
