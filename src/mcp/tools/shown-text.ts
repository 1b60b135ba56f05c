/**
 * Text of MCP servers as clients and models see it. Hidden characters are removed before secrets are redacted: a secret
 * with such characters in it would not be found, and would be complete again without them.
 */

/** Removes hidden characters and secrets, and returns no more than `max` characters: the beginning, or the end. */
export type ShowText = (text: string, max: number, part?: 'beginning' | 'end') => string

/** See `Redactor`. */
export type Redacting = {
  readonly redact: (text: string) => string
  readonly redactCutOff: (text: string) => string
}

/** Redacting megabytes takes long: of a longer text only so many times the shown characters are looked at. */
const SEEN_PER_SHOWN = 8

export function createShowText({ redact, redactCutOff }: Redacting): ShowText {
  return (text, max, part = 'beginning') => {
    if (part === 'end') return cutStart(redact(withoutHidden(text)), max)
    const seenText = text.slice(0, max * SEEN_PER_SHOWN)
    const plain = withoutHidden(seenText)
    return cutEnd(seenText.length < text.length ? redactCutOff(plain) : redact(plain), max)
  }
}

/** Shortens text that has no secrets, or whose secrets are redacted already. */
export const tidy = (text: string, max: number): string => cutEnd(withoutHidden(text.slice(0, max * 2)), max)

/** Control characters could forge what a reader sees; other ones are read by models only. */
const HIDDEN =
  // oxlint-disable-next-line no-control-regex -- that is what it looks for
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]|[\u{e0000}-\u{e007f}]/gu

const withoutHidden = (text: string): string => text.replaceAll(HIDDEN, '')

const cutEnd = (text: string, max: number): string =>
  (text.length > max ? `${text.slice(0, max)}…` : text).toWellFormed()

const cutStart = (text: string, max: number): string =>
  (text.length > max ? `…${text.slice(-max)}` : text).toWellFormed()
