import { expect, test } from 'vitest'
import { outcomeOf } from '../../src/state/client-outcome.ts'

const text = (words: string) => ({ type: 'text' as const, text: words })

test('an output of 100,000 characters is kept, and a longer one says how many are left out of its middle', () => {
  const whole = 'x'.repeat(100_000)
  expect(outcomeOf({ output: whole, isError: false })).toEqual({ output: whole })
  const half = 'x'.repeat(50_000)
  expect(outcomeOf({ output: `${half}abc${half}`, isError: false })).toEqual({
    output: `${half}\n[… 3 characters are left out …]\n${half}`,
    truncated: true,
  })
})

test('many parts are bounded as one text, with a line break between them', () => {
  const [first, last] = ['a'.repeat(50_000), 'b'.repeat(50_000)]
  expect(outcomeOf({ output: [text(first), text(last)], isError: false })).toEqual({
    output: `${first}\n[… 1 characters are left out …]\n${last}`,
    truncated: true,
  })
})

test('a failure has the text of its output as its message, up to 2000 characters, and says when there is none', () => {
  const messageOf = (output: unknown) => outcomeOf({ output, isError: true }).error?.message
  expect(messageOf('  it broke\n')).toBe('it broke')
  expect(messageOf({ code: 7 })).toBe('{"code":7}')
  expect(messageOf('x'.repeat(2001))).toBe('x'.repeat(2000))
  expect(messageOf('  ')).toBe('The client reported an error without a message.')
})
