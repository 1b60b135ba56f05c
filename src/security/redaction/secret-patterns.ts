/** What to look for of a secret's value. The only file that knows how values are written, beside `escape-decoder.ts`. */
import { MIN_SECRET_LENGTH } from '../../contract/secret.ts'
import type { EscapeKind } from './escape-decoder.ts'
import { decodeEscapes } from './escape-decoder.ts'
import type { Folding, LongPattern, Pattern } from './pattern-automaton.ts'

/** `spelled` is looked for in text, and in text whose escapes are undone; `encoded` is base64, in the latter. */
export type SecretPatterns = { readonly spelled: readonly Pattern[]; readonly encoded: readonly Pattern[] }

/**
 * The levels of escapes that are undone, one after the other: those of JSON inside JSON inside JSON (a file of JSON, in the
 * arguments of a call, in the body of a request), and of URLs between them. By themselves, as what is written in one kind
 * may hold what looks like the other.
 */
export const ESCAPE_LEVELS: readonly EscapeKind[] = ['backslash', 'percent', 'backslash', 'percent', 'backslash']

/** So many bytes of the beginning of a longer secret are taken for it: what a stream holds back is shorter than this. */
export const MAX_PATTERN_BYTES = 256

/** A value may itself hold what looks like escapes; of what these mean, less than this would be found in innocent text. */
const MIN_DECODED_BYTES = 4

/**
 * Patterns for one value: as it is, and inside base64. Of a value of several lines also each line alone, because
 * listings and searches show lines. `isWhole`: nothing less than all of it counts.
 */
export function patternsOf(name: string, value: string, isWhole: boolean): SecretPatterns {
  const whole = value.trim()
  const lines = isWhole ? [] : value.split(/\r\n|\r|\n/).map((line) => line.trim())
  const texts = new Set([whole, ...lines].flatMap((text) => [text, text.normalize('NFC'), text.normalize('NFD')]))
  const encoded = new Set([whole, JSON.stringify(whole).slice(1, -1)])
  const patternOf = (bytes: Uint8Array) => toPattern(name, bytes, isWhole)
  return {
    spelled: [...texts].filter(isLongEnough).flatMap(spellings).map(patternOf),
    encoded: [...encoded]
      .filter(isLongEnough)
      .flatMap((text) => [0, 1, 2].flatMap((lead) => base64Of(text, lead)))
      .map(patternOf),
  }
}

/** In a form, a plus sign is a space. */
export const foldSpelled: Folding = (byte) => (byte === 0x2b ? 0x20 : byte)

/** Both alphabets of base64. */
export const foldEncoded: Folding = (byte) => (byte === 0x2d ? 0x2b : byte === 0x5f ? 0x2f : byte)

const isLongEnough = (text: string) => text.length >= MIN_SECRET_LENGTH

function toPattern(name: string, bytes: Uint8Array, isWhole: boolean): Pattern {
  if (isWhole || bytes.length <= MAX_PATTERN_BYTES) return { name, bytes }
  const long: LongPattern = { name, bytes: () => bytes }
  return { name, bytes: bytes.subarray(0, MAX_PATTERN_BYTES), long }
}

/** As it is, and as it is read where escapes are undone: what looks like one in a value is undone with the others. */
function spellings(text: string): Uint8Array[] {
  const asWritten: Uint8Array = Buffer.from(text)
  const all = [asWritten]
  for (const from of [0, 1]) {
    let bytes = asWritten
    for (const kind of ESCAPE_LEVELS.slice(from)) {
      const decoded = decodeEscapes(kind, bytes)
      if (decoded.length === bytes.length) continue
      if (decoded.length < MIN_DECODED_BYTES) break
      all.push((bytes = decoded))
    }
  }
  return all
}

const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

/** The value inside base64 when `lead` bytes of its first group of three come before it. */
function base64Of(text: string, lead: number): Uint8Array[] {
  const bytes = Buffer.from(text)
  const all = Buffer.concat([Buffer.alloc(lead), bytes])
    .toString('base64')
    .replace(/=+$/, '')
  // The first characters mix in what stands before. They are left: a few bits of one character.
  const own = all.slice(lead === 0 ? 0 : lead + 1)
  // The last one mixes in what follows, or zeros where nothing does.
  const sharedBits = (6 - (((lead + bytes.length) * 8) % 6)) % 6
  if (sharedBits === 0) return [new Uint8Array(Buffer.from(own))]
  const sure = own.slice(0, -1)
  if (sure.length > MAX_PATTERN_BYTES) return [new Uint8Array(Buffer.from(sure))]
  const first = BASE64.indexOf(own.slice(-1))
  return Array.from(BASE64.slice(first, first + 2 ** sharedBits), (last) => new Uint8Array(Buffer.from(sure + last)))
}
