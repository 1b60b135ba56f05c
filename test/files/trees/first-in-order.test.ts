import { expect, test } from 'vitest'
import { createFirstInOrder } from '../../../src/files/trees/first-in-order.ts'

const byValue = (a: number, b: number) => a - b

/** 0 to `length`, each once, in a mixed order. */
const mixed = (length: number) => Array.from({ length }, (_, at) => (at * 7919) % length)

test.each([
  [0, 10],
  [5, 10],
  [999, 1000],
  [2500, 1],
  [2500, 1200],
  [2500, 5000],
])('%i items are reduced to the first %i, in order', (length, count) => {
  const first = createFirstInOrder(count, byValue)
  for (const each of mixed(length)) first.add(each)
  const expected = Array.from({ length: Math.min(length, count) }, (_, at) => at)
  expect(first.items()).toEqual(expected)
  expect(first.items()).toEqual(expected)
})

test('no single item costs more than one merge', () => {
  let comparisons = 0
  const first = createFirstInOrder(20_000, (a: number, b: number) => (comparisons++, a - b))
  const costs = mixed(40_000).map((each) => {
    const before = comparisons
    first.add(each)
    return comparisons - before
  })
  expect(Math.max(...costs)).toBeLessThan(40_000)
})
