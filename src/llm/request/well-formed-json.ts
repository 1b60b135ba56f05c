/** Makes JSON text acceptable for every parser: lone surrogates, which are halves of characters, become U+FFFD. */

/**
 * An escaped pair, an escaped lone surrogate, or any other escape, which may be a backslash before a harmless `ud800`.
 */
const ESCAPES = /\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\\[^]/g

const LONE_LENGTH = String.raw`\ud800`.length

/** Providers refuse a request with a lone surrogate, and with it every later request of the conversation. */
export function wellFormedJson(json: string): string {
  const text = json.toWellFormed()
  if (!/\\u[dD][89a-fA-F]/.test(text)) return text
  return text.replaceAll(ESCAPES, (escape) => (escape.length === LONE_LENGTH ? String.raw`\ufffd` : escape))
}
