/** Secrets that are longer than what the automaton has of them. */
import { describe, expect, test } from 'vitest'
import { LongMatch } from '../../../src/security/redaction/long-match.ts'
import { createRedactor } from '../../../src/security/redaction/redactor.ts'

const same = { areSame: (one: number, other: number) => one === other }

/** A pattern of this text, and how often its bytes were asked for. */
function patternOf(text: string) {
  const asked = { times: 0 }
  const bytes = () => {
    asked.times++
    return Buffer.from(text)
  }
  return { pattern: { name: 'LONG', bytes }, asked }
}

const verdicts = (match: LongMatch, text: string): string[] =>
  [...Buffer.from(text)].map((byte) => match.take(byte, same))

describe('a match of a long secret', () => {
  test('grows byte by byte, and is over with a byte that does not fit', () => {
    const match = new LongMatch(patternOf('abcdef').pattern, 3, 7)
    expect(verdicts(match, 'de')).toEqual(['grown', 'grown'])
    expect([match.start, match.isOver]).toEqual([7, false])
    expect(verdicts(match, 'x')).toEqual(['over'])
    expect(match.isOver).toBe(true)
  })

  test.each([
    ['ababab', 2, 'abab', ['grown', 'grown', 'grown', 'grown']],
    ['ababac', 2, 'abab', ['grown', 'grown', 'grown', 'moved']],
    ['ababac', 4, 'ab', ['grown', 'over']],
    ['aabaac', 2, 'baab', ['grown', 'grown', 'grown', 'moved']],
    ['aaa', 2, 'aaa', ['grown', 'moved', 'moved']],
    ['abc', 2, 'ca', ['grown', 'over']],
  ])('of %s, of which %i bytes were found, with %s next: %j', (text, least, next, expected) => {
    expect(verdicts(new LongMatch(patternOf(text).pattern, least, 0), next)).toEqual(expected)
  })

  test('is prepared once for each pattern', () => {
    const { pattern, asked } = patternOf('abcdef')
    for (const _ of [1, 2]) expect(verdicts(new LongMatch(pattern, 5, 0), 'f')).toEqual(['grown'])
    expect(asked.times).toBe(1)
    expect(verdicts(new LongMatch(patternOf('abcdef').pattern, 5, 0), 'f')).toEqual(['grown'])
  })
})

describe('a secret of more than 256 bytes', () => {
  const LONG = Array.from({ length: 100 }, (_, at) => `${at}-${at * at};`)
    .join('')
    .slice(0, 300)
  const END = LONG.slice(-20)

  test('is replaced as a whole, also where the end of a server key of more than 256 bytes begins it', () => {
    const redactor = createRedactor()
    redactor.set('LONG', LONG)
    redactor.setServerKey('KEY', `x${LONG.slice(0, 256)}`)
    expect(redactor.redact(`see ${LONG}.`)).toBe('see <secret:LONG>.')
    expect(redactor.redact(`see x${LONG.slice(0, 256)}.`)).not.toContain(LONG.slice(200, 256))
    expect(redactor.redact(`see x${LONG}.`)).not.toContain(END)
  })

  test('is replaced also where another one begins with it, of which as much goes as is there', () => {
    const redactor = createRedactor()
    redactor.set('LONG', LONG)
    redactor.set('LONGER', `${LONG} and more of it`)
    expect(redactor.redact(`${LONG} and more of it`)).toBe('<secret:LONGER>')
    expect(redactor.redact(`${LONG} and less`)).toBe('<secret:LONGER>less')
  })
})
