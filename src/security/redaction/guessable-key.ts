/** Detects guessable keys. Pure; the result never contains any part of the key. */

/**
 * The bits of a key that only `openssl rand` or similar can have created. A billion guesses a second take centuries for
 * these.
 */
const MIN_BITS = 64
const MIN_LENGTH = 16
const MIN_DIFFERENT = 8

/** The average entropy per letter in words and names. */
const BITS_PER_SPOKEN_LETTER = 2.5
const MIN_SPOKEN_LETTERS = 4
/** The entropy of one of the words below, in any case and spelling. */
const BITS_PER_KNOWN_WORD = 8
/** The entropy of its start, direction and length. */
const BITS_PER_SEQUENCE = 6
const MIN_SEQUENCE = 4
const BITS_PER_SEPARATOR = 1

/** Common parts of passwords and keys. */
const WORDS = [
  'password passwort passwd pass admin administrator root user login welcome letmein hello dragon monkey master shadow',
  'sunshine princess football baseball superman batman trustno iloveyou secret geheim private public key keys token auth',
  'test testing tester demo dev develop developer development prod production staging stage local localhost default',
  'example sample change changeme replace please dummy fake temp temporary guest server agent agents openhands hands',
  'open openai anthropic claude codex api apikey service internal super mega my our your the this that not very secure',
  'security safe strong random company team project cluster docker kubernetes container backend frontend database',
  'summer winter spring autumn monday friday january october december love money freedom computer internet google',
  'correct horse battery staple foo bar baz foobar lorem ipsum value here insert todo unknown nothing none null',
]
  .join(' ')
  .split(' ')
  .sort((a, b) => b.length - a.length)

const ROWS = ['qwertyuiop', 'qwertzuiop', 'azertyuiop', 'asdfghjkl', 'zxcvbnm', 'yxcvbnm', '1234567890'].flatMap(
  (row) => [row, Array.from(row).toReversed().join('')],
)

const LOOKALIKES: Readonly<Record<string, string>> = {
  0: 'o',
  1: 'i',
  3: 'e',
  4: 'a',
  5: 's',
  7: 't',
  '@': 'a',
  $: 's',
}

/** Returns why a key can be guessed, as a clause; undefined if it cannot. */
export function findWeakness(key: string): string | undefined {
  if (key.length < MIN_LENGTH) return `it has fewer than ${MIN_LENGTH} characters`
  if (new Set(key).size < MIN_DIFFERENT) return `it is made of fewer than ${MIN_DIFFERENT} different characters`
  const period = periodOf(key)
  if (period < key.length) return 'it repeats itself'
  return bitsIn(key) < MIN_BITS ? 'it is made of words, sequences or repetition' : undefined
}

/**
 * Returns the length of the repeated part, whose last repetition may be incomplete; the whole length if nothing is
 * repeated.
 */
function periodOf(key: string): number {
  for (let period = 1; period <= key.length / 2; period++) if (key.startsWith(key.slice(period))) return period
  return key.length
}

/** Returns the maximum entropy, assuming that somebody invented the key part by part. */
function bitsIn(key: string): number {
  const spelledKey = Array.from(key.toLowerCase(), (character) => LOOKALIKES[character] ?? character).join('')
  const perCharacter = Math.log2(alphabetOf(key))
  let bits = 0
  for (let at = 0; at < key.length;) {
    const part = partAt(key, spelledKey, at, perCharacter)
    bits += part.bits
    at += part.length
  }
  return bits
}

type Part = { readonly length: number; readonly bits: number }

function partAt(key: string, spelledKey: string, at: number, perCharacter: number): Part {
  const sequence = sequenceAt(key.toLowerCase(), at)
  if (sequence >= MIN_SEQUENCE) return { length: sequence, bits: BITS_PER_SEQUENCE }
  const word = WORDS.find((knownWord) => knownWord.length > 2 && spelledKey.startsWith(knownWord, at))
  if (word !== undefined) return { length: word.length, bits: BITS_PER_KNOWN_WORD }
  const spokenLength = /^(?:[A-Z]?[a-z]+|[A-Z]+)/.exec(key.slice(at))?.[0].length ?? 0
  if (spokenLength >= MIN_SPOKEN_LETTERS) return { length: spokenLength, bits: spokenLength * BITS_PER_SPOKEN_LETTER }
  return { length: 1, bits: /[-_. ]/.test(key.charAt(at)) ? BITS_PER_SEPARATOR : perCharacter }
}

/** Returns the length of a sequence such as `aaaa`, `abcd`, `4321` or `qwer` here. */
function sequenceAt(key: string, at: number): number {
  const steps = [-1, 0, 1].map((step) => {
    let end = at + 1
    while (end < key.length && key.charCodeAt(end) - key.charCodeAt(end - 1) === step) end++
    return end - at
  })
  const rows = ROWS.map((row) => commonLength(row.slice(row.indexOf(key.charAt(at))), key.slice(at)))
  return Math.max(...steps, ...rows)
}

/** Returns the length of the common beginning. */
function commonLength(one: string, other: string): number {
  let length = 0
  while (length < one.length && one[length] === other[length]) length++
  return length
}

/** Returns the size of the alphabet that a key like this is chosen from. */
function alphabetOf(key: string): number {
  if (/^[0-9]+$/.test(key)) return 10
  if (/^[0-9a-f-]+$/i.test(key)) return 16
  const kinds = [
    { pattern: /[0-9]/, size: 10 },
    { pattern: /[a-z]/, size: 26 },
    { pattern: /[A-Z]/, size: 26 },
    { pattern: /[^0-9a-zA-Z]/, size: 20 },
  ]
  return kinds.reduce((sum, { pattern, size }) => sum + (pattern.test(key) ? size : 0), 0)
}
