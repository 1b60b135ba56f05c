import { setImmediate as tick } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createKeyedSlots } from '../../../src/conversations/webhooks/keyed-slots.ts'

const FOREVER = new AbortController().signal

function setUp(limits: { total: number; perKey: number }) {
  const slots = createKeyedSlots(limits)
  const begun: string[] = []
  const ends = new Map<string, () => void>()
  const run = (name: string, signal = FOREVER) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    ends.set(name, resolve)
    const work = async () => {
      begun.push(name)
      await promise
      return name
    }
    return slots(name[0]!, work, signal)
  }
  return { begun, run, end: (name: string) => (ends.get(name)!(), tick()) }
}

test('a key that has used up its share waits, another goes ahead', async () => {
  const { begun, run, end } = setUp({ total: 10, perKey: 2 })
  const all = ['a1', 'a2', 'a3', 'b1'].map((name) => run(name))
  await tick()
  expect(begun).toEqual(['a1', 'a2', 'b1'])
  await end('a2')
  expect(begun.at(-1)).toBe('a3')
  for (const name of ['a1', 'a3', 'b1']) await end(name)
  expect(await Promise.all(all)).toEqual(['a1', 'a2', 'a3', 'b1'])
})

test('in all there are no more than the total; keys that wait take turns', async () => {
  const { begun, run, end } = setUp({ total: 1, perKey: 1 })
  void ['a1', 'a2', 'a3', 'b1', 'c1'].map((name) => run(name))
  for (const name of ['a1', 'a2', 'b1', 'c1', 'a3']) await end(name)
  expect(begun).toEqual(['a1', 'a2', 'b1', 'c1', 'a3'])
})

test('work that fails gives its place back; a signal ends the wait, and takes no place', async () => {
  const slots = createKeyedSlots({ total: 1, perKey: 1 })
  await expect(slots('a', () => Promise.reject(new Error('failed')), FOREVER)).rejects.toThrow('failed')
  const { begun, run, end } = setUp({ total: 1, perKey: 1 })
  const controller = new AbortController()
  const one = run('a1')
  const waiting = run('a2', controller.signal)
  const third = run('a3')
  controller.abort(new Error('no longer'))
  await expect(waiting).rejects.toThrow('no longer')
  await end('a1')
  await end('a3')
  expect(await Promise.all([one, third])).toEqual(['a1', 'a3'])
  expect(begun).toEqual(['a1', 'a3'])
})
