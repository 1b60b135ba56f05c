import { expect, test } from 'vitest'
import { uuid7, uuid7Time } from '../../src/lib/uuid7.ts'

test('an id has version 7, the variant of RFC 9562, and its time', () => {
  const ms = Date.UTC(2026, 5, 1, 12, 0, 0, 123)
  const id = uuid7(ms)
  expect(id).toMatch(/^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/)
  expect(uuid7Time(id)).toBe(ms)
})

test('ids ascend in the order of creation, within a millisecond too, without duplicates', () => {
  const ids = Array.from({ length: 100_000 }, (_, i) => uuid7(1_800_000_000_000 + Math.floor(i / 30_000)))
  expect(ids).toEqual(ids.toSorted())
  expect(new Set(ids).size).toBe(ids.length)
})

test('ids made after the clock jumped back contain the given time', () => {
  expect(uuid7Time(uuid7(2000))).toBe(2000)
  expect(uuid7Time(uuid7(1000))).toBe(1000)
})

test('other text has no time', () => {
  for (const text of ['', 'x', '6ba7b810-9dad-11d1-80b4-00c04fd430c8', `${uuid7()} `])
    expect(uuid7Time(text)).toBeUndefined()
})
