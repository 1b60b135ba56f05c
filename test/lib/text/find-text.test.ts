import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  createByteSearch,
  createPatientFinder,
  createTextFinder,
  indexIgnoringSpace,
  indexOfText,
} from '../../../src/lib/text/find-text.ts'
import { createSlices } from '../../../src/lib/time-slices.ts'

/** Of few letters, so that it repeats itself; longer than what the engine is left to search for. */
const text = (letters: string, minLength: number, maxLength: number) =>
  fc.string({ unit: fc.constantFrom(...letters.split('')), minLength, maxLength })

test('finds what indexOf finds, overlapping ones too', () => {
  fc.assert(
    fc.property(text('ab', 0, 200), text('ab', 17, 20), text('ab', 0, 50), (before, wanted, after) => {
      const all = before + wanted + after + wanted.slice(3) + wanted
      const find = createTextFinder(all, wanted)
      const findBytes = createByteSearch(Buffer.from(wanted))
      for (let at = -1; ;) {
        const next = all.indexOf(wanted, at + 1)
        expect(find(at + 1)).toBe(next)
        expect(findBytes(Buffer.from(all), at + 1)).toBe(next)
        if (next < 0) return
        at = next
      }
    }),
  )
})

test('in a text of many windows finds the same, also across their borders, in steps or at once', async () => {
  const unit = `${'a'.repeat(40)}b`
  const wanted = unit.repeat(3)
  const text = unit.repeat(6000)
  const find = createTextFinder(text, wanted)
  const findInSteps = createPatientFinder(text, wanted, createSlices())
  for (let n = 0; n < 5998; n++) {
    expect(find(n === 0 ? 0 : (n - 1) * 41 + 1)).toBe(n * 41)
    expect(await findInSteps(n === 0 ? 0 : (n - 1) * 41 + 1)).toBe(n * 41)
  }
  expect(await findInSteps(5997 * 41 + 1)).toBe(-1)
  expect(await createPatientFinder(text, `${wanted}a`.replace('b', 'c'), createSlices())(0)).toBe(-1)
})

test('finds short texts, texts beyond ASCII, and nothing', () => {
  expect(indexOfText('abc', 'c')).toBe(2)
  expect(indexOfText('abc', 'c', 3)).toBe(-1)
  const wanted = '€😀'.repeat(10)
  expect(indexOfText(`x${wanted}`, wanted)).toBe(1)
  expect(indexOfText('€'.repeat(100), wanted)).toBe(-1)
})

test('ignoring whitespace, finds the same as in texts without any', () => {
  fc.assert(
    fc.property(text('ab \n\u00a0', 0, 40), text('ab \t', 1, 5), (all, wanted) => {
      const [bareAll, bare] = [all.replaceAll(/\s/g, ''), wanted.replaceAll(/\s/g, '')]
      const bareAt = bare === '' ? -1 : bareAll.indexOf(bare)
      const places = Array.from(all, (_, at) => at).filter((at) => !/\s/.test(all[at]!))
      expect(indexIgnoringSpace(all, wanted)).toBe(bareAt < 0 ? -1 : places[bareAt])
    }),
  )
})
