/**
 * The patterns to search for a secret's value. Together with `escape-decoder.ts`, the only file that knows how values
 * are written.
 */
import { MIN_SECRET_LENGTH } from '../../contract/secret.ts'
import type { EscapeKind } from './escape-decoder.ts'
import { decodeEscapes } from './escape-decoder.ts'
import type { Folding, LongPattern, Pattern } from './pattern-automaton.ts'

/** `spelled` is searched in text, and in text with decoded escapes; `encoded` is base64, in the latter. */
export type SecretPatterns = { readonly spelled: readonly Pattern[]; readonly encoded: readonly Pattern[] }

/**
 * The levels of escapes that are decoded one after the other: JSON inside JSON inside JSON (a JSON file, in the
 * arguments of a call, in the body of a request), and URLs in between. Separate, because text in one kind may contain
 * what looks like the other.
 */
export const ESCAPE_LEVELS: readonly EscapeKind[] = ['backslash', 'percent', 'backslash', 'percent', 'backslash']

/** The automaton has only the beginning of a longer secret: a stream buffers less than this. */
export const MAX_PATTERN_BYTES = 256

/**
 * A value may itself contain what looks like escapes; decoded values shorter than this would be found in innocent text.
 */
const MIN_DECODED_BYTES = 4

/**
 * Returns patterns for one value: as it is, and inside base64. For a multi-line value also each line alone, because
 * listings and searches show lines. `isWhole`: only the complete value counts.
 */
export function patternsOf(name: string, value: string, isWhole: boolean): SecretPatterns {
  const whole = value.trim()
  const lines = isWhole ? [] : value.split(/\r\n|\r|\n/).map((line) => line.trim())
  const texts = new Set([...new Set([whole, ...lines])].flatMap(forms))
  const encodedForms = new Set([whole, JSON.stringify(whole).slice(1, -1)])
  const patternOf = (bytes: Uint8Array) => toPattern(name, bytes, isWhole)
  return {
    spelled: [...texts].filter(isLongEnough).flatMap(spellings).map(patternOf),
    encoded: [...encodedForms]
      .filter(isLongEnough)
      .flatMap((text) => [0, 1, 2].flatMap((lead) => base64Of(text, lead)))
      .map(patternOf),
  }
}

/** No language needs more: the Stream-Safe Text Format of Unicode (UAX #15) has at most 30. */
const MANY_MARKS = /\p{M}{31}/u

/** The same text in the normal forms of Unicode. With many marks on a letter only itself: sorting them takes quadratic time. */
const forms = (text: string): string[] =>
  MANY_MARKS.test(text) ? [text] : [text, text.normalize('NFC'), text.normalize('NFD')]

/** A plus sign is a space in a form. */
export const foldSpelled: Folding = (byte) => (byte === 0x2b ? 0x20 : byte)

/** Folds both alphabets of base64. */
export const foldEncoded: Folding = (byte) => (byte === 0x2d ? 0x2b : byte === 0x5f ? 0x2f : byte)

const isLongEnough = (text: string) => text.length >= MIN_SECRET_LENGTH

function toPattern(name: string, bytes: Uint8Array, isWhole: boolean): Pattern {
  if (isWhole || bytes.length <= MAX_PATTERN_BYTES) return { name, bytes }
  const long: LongPattern = { name, bytes: () => bytes }
  return { name, bytes: bytes.subarray(0, MAX_PATTERN_BYTES), long }
}

/** Returns the value itself, and as it reads after decoding: what looks like an escape in a value is decoded, too. */
function spellings(text: string): Uint8Array[] {
  const asWritten: Uint8Array = Buffer.from(text)
  const all = [asWritten]
  for (const from of [0, 1]) {
    let bytes = asWritten
    for (const kind of ESCAPE_LEVELS.slice(from)) {
      const decodedBytes = decodeEscapes(kind, bytes)
      if (decodedBytes.length === bytes.length) continue
      if (decodedBytes.length < MIN_DECODED_BYTES) break
      all.push((bytes = decodedBytes))
    }
  }
  return all
}

const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

/** Returns the value inside base64 if `lead` bytes of its first group of three precede it. */
function base64Of(text: string, lead: number): Uint8Array[] {
  const bytes = Buffer.from(text)
  const all = Buffer.concat([Buffer.alloc(lead), bytes])
    .toString('base64')
    .replace(/(?<!=)=+$/, '')
  // The first characters depend on the preceding bytes. They are left unredacted: a few bits of one character.
  const own = all.slice(lead === 0 ? 0 : lead + 1)
  // The last character depends on the following bytes, or zeros.
  const sharedBits = (6 - (((lead + bytes.length) * 8) % 6)) % 6
  if (sharedBits === 0) return [new Uint8Array(Buffer.from(own))]
  const sure = own.slice(0, -1)
  if (sure.length > MAX_PATTERN_BYTES) return [new Uint8Array(Buffer.from(sure))]
  const first = BASE64.indexOf(own.slice(-1))
  return Array.from(BASE64.slice(first, first + 2 ** sharedBits), (last) => new Uint8Array(Buffer.from(sure + last)))
}
