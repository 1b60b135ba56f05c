import { expect, test } from 'vitest'
import { createIncrementalFold } from '../../src/llm/request/growing-bytes.ts'

function setFold() {
  const added: number[] = []
  const sum = createIncrementalFold(
    () => 0,
    (value, item: number) => {
      added.push(item)
      return value + item
    },
  )
  return { sum, added }
}

test('a list that has grown is folded from where the last fold ended', () => {
  const { sum, added } = setFold()
  const list = [1, 2]
  expect(sum(list)).toBe(3)
  list.push(3)
  expect([sum(list), sum(list)]).toEqual([6, 6])
  expect(added, 'each item once').toEqual([1, 2, 3])
})

test('another list starts over, and so does one that shrank', () => {
  const { sum } = setFold()
  const list = [1, 2]
  sum(list)
  expect(sum([5]), 'another').toBe(5)
  expect(sum(list)).toBe(3)
  list.length = 1
  expect(sum(list), 'shrunk').toBe(1)
})
