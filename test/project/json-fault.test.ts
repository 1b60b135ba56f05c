/** The position of what is wrong in a JSON text; whether something is wrong is what `JSON.parse` says. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { findJsonFault } from '../../src/project/json-fault.ts'
import { effort } from '../support/patience.ts'

const isJson = (text: string) => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

test('what JSON.parse accepts has no fault, and what it refuses has one', () => {
  const broken = fc.tuple(
    fc.json(),
    fc.nat(),
    fc.constantFrom('', ',', '"', '{', ']', '\\', 'x', '\n', '-', '0', '\u0001'),
  )
  fc.assert(
    fc.property(broken, ([text, at, inserted]) => {
      const start = at % (text.length + 1)
      const changed = text.slice(0, start) + inserted + text.slice(inserted === '' ? start + 1 : start)
      const fault = findJsonFault(changed)
      if (!fault?.includes('twice')) expect(fault === undefined, changed).toBe(isJson(changed))
    }),
    { numRuns: effort(60, 5000) },
  )
})

test.each([
  ['{"a": [}', 'It is not valid JSON (line 1, column 8).'],
  ['{\n  "a": 1,\n}', 'It is not valid JSON (line 3, column 1).'],
  ['', 'It is not valid JSON (line 1, column 1).'],
  ['{"a": 1} x', 'It is not valid JSON (line 1, column 10).'],
  ['{"a": 1, "\\u0061": 2}', 'The same name is in an object twice (line 1, column 10).'],
])('%j: %s', (text, fault) => {
  expect(findJsonFault(text)).toBe(fault)
})

test('a long text is scanned in linear time', () => {
  // A square of these lengths would take longer than a test may.
  for (const text of [
    '"'.repeat(2_500_000),
    `"${'\\n'.repeat(1_200_000)}`,
    `[${'1,'.repeat(1_200_000)}`,
    `"${'a'.repeat(2_500_000)}`,
    `"${'a'.repeat(30)}`,
    ' '.repeat(2_500_000),
  ])
    expect(findJsonFault(text)).toBeDefined()
  expect(findJsonFault(`"${'a'.repeat(2_500_000)}"`)).toBeUndefined()
})
