/** The ways in which a secret's value can be written. The only file that knows encodings; what finds them is `secret-automaton.ts`. */
import { MIN_SECRET_LENGTH } from '../contract/secret.ts'

/** What text is made of: UTF-16 units, or the bytes of UTF-8 (each as the character of that number). */
export type TextUnit = 'char' | 'byte'

/** A sequence of places, each with the texts that may stand there; a form is written wherever one of each follow each other. */
export type Form = {
  readonly name: string
  readonly length: number
  /** Whether there is more in it than ASCII. */
  readonly isWide: boolean
  /** Each at least one unit long. */
  readonly waysAt: (place: number) => readonly string[]
}

/** JSON inside JSON inside JSON: a file of JSON, in the arguments of a call, in the body of a request. */
const ESCAPE_LEVELS = 3

/** Between two lines of base64, as programs wrap it, and as that looks inside a JSON string. */
const LINE_BREAKS = ['', '\n', '\r\n', String.raw`\n`, String.raw`\r\n`]

/**
 * All forms of one value: as it is with every character plain or escaped for JSON, a shell or a URL, and in base64. Of a
 * value of several lines also each line alone, because listings and searches show lines.
 */
export function formsOf(name: string, value: string, unit: TextUnit): Form[] {
  const texts = new Set([value.trim(), ...value.split(/\r\n|\r|\n/).map((line) => line.trim())])
  const whole = value.trim()
  const encoded = new Set([whole, escapeJson(whole)])
  return [
    ...[...texts].filter(isLongEnough).map((text) => spelledForm(name, text, unit)),
    ...[...encoded].filter(isLongEnough).flatMap((text) => [0, 1, 2].map((lead) => base64Form(name, text, lead))),
  ]
}

const isLongEnough = (text: string) => text.length >= MIN_SECRET_LENGTH

function spelledForm(name: string, text: string, unit: TextUnit): Form {
  // By characters, not units: an escaped character beyond U+FFFF is four bytes in a URL.
  const characters = /[\ud800-\udfff]/.test(text) ? Array.from(text) : text
  const isWide = /[^\0-\x7f]/.test(text)
  return { name, length: characters.length, isWide, waysAt: (place) => waysToWrite(characters[place]!, unit) }
}

/** The value inside base64 when `lead` bytes of its first group of three come before it. */
function base64Form(name: string, text: string, lead: number): Form {
  const bytes = Buffer.from(text)
  const all = Buffer.concat([Buffer.alloc(lead), bytes])
    .toString('base64')
    .replace(/=+$/, '')
  // The first characters mix in what stands before. They are left: a few bits of one character.
  const own = all.slice(lead === 0 ? 0 : lead + 1)
  // The last one mixes in what follows, or zeros where nothing does.
  const sharedBits = (6 - (((lead + bytes.length) * 8) % 6)) % 6
  const waysAt = (place: number) => {
    const characters = place === own.length - 1 ? withSameHead(own.at(-1)!, sharedBits) : [own[place]!]
    const ways = characters.flatMap(base64Ways)
    return place === 0 ? ways : LINE_BREAKS.flatMap((lineBreak) => ways.map((way) => lineBreak + way))
  }
  return { name, length: own.length, isWide: false, waysAt }
}

const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

function withSameHead(character: string, sharedBits: number): string[] {
  const first = BASE64.indexOf(character)
  return Array.from(BASE64.slice(first, first + 2 ** sharedBits))
}

/** Both alphabets, and as part of a URL or of a JSON string. */
function base64Ways(character: string): string[] {
  if (character === '+') return ['+', '-', '%2B', '%2b']
  if (character === '/') return ['/', '_', '%2F', '%2f', String.raw`\/`]
  return [character]
}

/** Worked out once for each ASCII character, which are the same in either unit. */
const asciiWays = new Map<string, readonly string[]>()

function waysToWrite(character: string, unit: TextUnit): readonly string[] {
  const known = asciiWays.get(character)
  if (known) return known
  const ways = workOutWays(character, unit)
  if (character <= '\x7f') asciiWays.set(character, ways)
  return ways
}

function workOutWays(character: string, unit: TextUnit): string[] {
  const bytes = Buffer.from(character)
  const plain = unit === 'byte' ? bytes.toString('latin1') : character
  const escapes = escapesOf(character)
  const ways = [
    plain,
    ...escapes.flatMap(atEachLevel),
    ...bothCases(percentEncode(character)),
    // A JSON document in a URL.
    ...escapes.flatMap((escape) => bothCases(escape.replace(/[^A-Za-z0-9]/g, percentEncode))),
    ...(character === ' ' ? ['+'] : []),
    ...(character === "'" ? atEachLevel(`'\\''`) : []),
  ]
  return [...new Set(ways)]
}

/** `\n`, `\"`, `\u00e9`; shells and others put a backslash before any punctuation, or write bytes as `\303` and `\xc3`. */
function escapesOf(character: string): string[] {
  const short = escapeJson(character)
  const units = Array.from({ length: character.length }, (_, at) => character.charCodeAt(at))
  const unicode = units.map((code) => `\\u${code.toString(16).padStart(4, '0')}`).join('')
  const bytes = [...Buffer.from(character)]
  const octal = bytes.map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('')
  const hex = bytes.map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('')
  const shell = /^[ -/:-@[-`{-~]$/.test(character) ? [`\\${character}`] : []
  const upper = (escape: string) => escape.toUpperCase().replaceAll(/\\[UX]/g, (start) => start.toLowerCase())
  return [...(short === character ? [] : [short]), ...shell, unicode, upper(unicode), hex, upper(hex), octal]
}

function atEachLevel(escape: string): string[] {
  const levels = [escape]
  while (levels.length < ESCAPE_LEVELS) levels.push(escapeJson(levels.at(-1)!))
  return levels
}

function percentEncode(text: string): string {
  return Buffer.from(text).toString('hex').replaceAll(/../g, '%$&').toUpperCase()
}

const bothCases = (text: string) => [text, text.replaceAll(/%../g, (code) => code.toLowerCase())]

const escapeJson = (text: string) => JSON.stringify(text).slice(1, -1)
