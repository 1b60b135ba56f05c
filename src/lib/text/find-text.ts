/**
 * Finds a text in a text, or bytes in bytes, in linear time (Knuth, Morris and Pratt). `indexOf` multiplies the two
 * lengths if the texts are repetitive: 25,000 characters in a megabyte of `a` take it ten seconds.
 */
/* oxlint-disable typescript/no-non-null-assertion -- indexes into the borders and the wanted bytes, which have the same length */
import type { Slices } from '../time-slices.ts'

/**
 * Returns the position of the sequence at or after `from`, -1 if there is none. Consecutive finds continue where the
 * last one stopped.
 */
export type Finder = (from: number) => number

/** A short text cannot multiply much, and the engine compares many characters at once. */
const SHORT = 16

/** Characters scanned before other work gets a turn. */
const STEP = 500_000

export function indexOfText(text: string, wantedText: string, from = 0): number {
  return createTextFinder(text, wantedText)(from)
}

/** Serves several searches of one text: even overlapping finds scan each character once if `from` only grows by one. */
export function createTextFinder(text: string, wantedText: string): Finder {
  if (wantedText.length <= SHORT) return (from) => text.indexOf(wantedText, from)
  const search = searchOf(text, wantedText)
  return (from) => search(from, Infinity)!
}

/** Searches texts of megabytes: yields to other work between its steps. */
export function createPatientFinder(
  text: string,
  wantedText: string,
  slices: Slices,
): (from: number) => Promise<number> {
  if (wantedText.length <= SHORT) return (from) => Promise.resolve(text.indexOf(wantedText, from))
  const search = searchOf(text, wantedText)
  return async (from) => {
    for (let foundAt = search(from, STEP); ; foundAt = search(undefined, STEP)) {
      if (foundAt !== undefined) return foundAt
      await slices.rest()
    }
  }
}

/** Prepared once for many pieces. */
export function createByteSearch(wantedBytes: Uint8Array): (bytes: Buffer, from: number) => number {
  if (wantedBytes.length <= SHORT) return (bytes, from) => bytes.indexOf(wantedBytes, from)
  const borders = bordersOf(wantedBytes)
  return (bytes, from) => createSearch(bytes.length, () => [bytes, 0], wantedBytes, borders)(from, Infinity)!
}

/** Returns the start of a text with the same characters as `wanted`, ignoring whitespace in both. */
export function indexIgnoringSpace(text: string, wantedText: string): number {
  const bare = withoutSpace(wantedText)
  if (bare.length === 0) return -1
  const borders = bordersOf(bare)
  let matchedCount = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (isSpace(code)) continue
    while (matchedCount > 0 && code !== bare[matchedCount]) matchedCount = borders[matchedCount - 1]!
    if (code === bare[matchedCount]) matchedCount++
    if (matchedCount === bare.length) return backOver(text, at, bare.length)
  }
  return -1
}

/** Returns the start of the last `count` characters before `at`, not counting whitespace. */
function backOver(text: string, at: number, count: number): number {
  for (let remainingCount = count; ; at--) if (!isSpace(text.charCodeAt(at)) && --remainingCount === 0) return at
}

/** Numbers instead of a string: a loop over them takes half the time. */
type Codes = Uint8Array | Uint16Array

/** A part of a sequence, and where it begins. */
type Window = readonly [codes: Codes, start: number]

/** Characters of a text that are converted to numbers at a time. */
const WINDOW = 65_536

/**
 * Scans `most` elements at or after `from`, or from where it stopped before. Returns the position of the sequence, -1
 * if there is none, undefined if there is more to scan.
 */
type Search = (from: number | undefined, most: number) => number | undefined

function searchOf(text: string, wantedText: string): Search {
  const codes = codesOf(wantedText)
  const windowAt = (at: number): Window => [codesOf(text.slice(at, at + WINDOW)), at]
  return createSearch(text.length, windowAt, codes, bordersOf(codes))
}

function createSearch(
  length: number,
  windowAt: (at: number) => Window,
  wantedCodes: Codes,
  borders: Uint32Array,
): Search {
  let at = 0
  let matchedCount = 0
  let lastFound = -1
  let window: Window = [new Uint8Array(), 0]
  return (from, most) => {
    // The common part of the last find and the next one is not scanned again.
    if (lastFound >= 0 && from === lastFound + 1) matchedCount = borders[wantedCodes.length - 1]!
    else if (from !== undefined) [at, matchedCount] = [from, 0]
    const stop = Math.min(length, at + most)
    while (at < stop) {
      let [codes, start] = window
      if (at < start || at >= start + codes.length) [codes, start] = window = windowAt(at)
      const end = Math.min(stop, start + codes.length) - start
      for (let i = at - start; i < end;) {
        const code = codes[i++]
        while (matchedCount > 0 && code !== wantedCodes[matchedCount]) matchedCount = borders[matchedCount - 1]!
        if (code === wantedCodes[matchedCount]) matchedCount++
        if (matchedCount !== wantedCodes.length) continue
        at = start + i
        return (lastFound = at - wantedCodes.length)
      }
      at = start + end
    }
    return at < length ? undefined : (lastFound = -1)
  }
}

/**
 * Returns for each beginning of the sequence the length of its longest border, a part that it both begins and ends
 * with.
 */
function bordersOf(wantedCodes: Codes): Uint32Array {
  const borders = new Uint32Array(wantedCodes.length)
  for (let at = 1, border = 0; at < wantedCodes.length; at++) {
    while (border > 0 && wantedCodes[at] !== wantedCodes[border]) border = borders[border - 1]!
    if (wantedCodes[at] === wantedCodes[border]) border++
    borders[at] = border
  }
  return borders
}

/** Returns the UTF-16 code units of a text. */
export function codesOf(text: string): Uint16Array {
  const bytes = Buffer.allocUnsafeSlow(text.length * 2)
  bytes.write(text, 'utf16le')
  return new Uint16Array(bytes.buffer, bytes.byteOffset, text.length)
}

function withoutSpace(text: string): Uint16Array {
  const codes = new Uint16Array(text.length)
  let length = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (!isSpace(code)) codes[length++] = code
  }
  return codes.subarray(0, length)
}

/** The characters of `\s` in a regular expression. */
function isSpace(code: number): boolean {
  if (code <= 0x20) return code === 0x20 || (code >= 0x09 && code <= 0x0d)
  if (code < 0xa0) return false
  return OTHER_SPACES.has(code)
}

const OTHER_SPACES: ReadonlySet<number> = new Set(
  [0xa0, 0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000, 0xfeff].concat(
    Array.from({ length: 11 }, (_, at) => 0x2000 + at),
  ),
)
