import { expect, test } from 'vitest'
import { Slots } from '../../src/lib/slots.ts'

test('gives as many slots as allowed, in total and per key', () => {
  const slots = new Slots({ limit: 3, perKey: 2 })
  const release = slots.take('a')
  expect([slots.take('a'), slots.take('a')]).toEqual([expect.any(Function), undefined])
  expect([slots.take('b'), slots.take('b'), slots.taken]).toEqual([expect.any(Function), undefined, 3])
  release?.()
  expect(slots.take('b')).toBeDefined()
})

test('a slot that is released twice is free once', () => {
  const slots = new Slots({ limit: 2 })
  const release = slots.take()
  slots.take()
  release?.()
  release?.()
  expect(slots.taken).toBe(1)
  expect([slots.take(), slots.take()]).toEqual([expect.any(Function), undefined])
})
