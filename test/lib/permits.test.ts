import { expect, test } from 'vitest'
import { createPermits } from '../../src/lib/permits.ts'

test('lets so much work go on and no more, the rest in the order it came', async () => {
  const permits = createPermits(2)
  const order: string[] = []
  const gates = ['a', 'b', 'c', 'd'].map((name) => ({ name, ...Promise.withResolvers<void>() }))
  const done = gates.map(({ name, promise }) =>
    permits(async () => {
      order.push(name)
      await promise
    }),
  )
  await Promise.resolve()
  expect(order).toEqual(['a', 'b'])
  gates[1]!.resolve()
  await done[1]
  await expect.poll(() => order).toEqual(['a', 'b', 'c'])
  for (const gate of gates) gate.resolve()
  await Promise.all(done)
  expect(order).toEqual(['a', 'b', 'c', 'd'])
})

test('work that fails fails its own caller, and gives its permit back', async () => {
  const permits = createPermits(1)
  await expect(permits(() => Promise.reject(new Error('no')))).rejects.toThrow('no')
  expect(await permits(async () => 'yes')).toBe('yes')
})

test('who gives up waiting is not begun, and is not waited for', async () => {
  const permits = createPermits(1)
  const gate = Promise.withResolvers<void>()
  const first = permits(() => gate.promise)
  const abort = new AbortController()
  const second = permits(() => Promise.reject(new Error('it was begun')), abort.signal)
  const third = permits(async () => 'third')
  abort.abort(new Error('given up'))
  await expect(second).rejects.toThrow('given up')
  gate.resolve()
  await first
  expect(await third).toBe('third')
  await expect(permits(async () => 'late', abort.signal)).rejects.toThrow('given up')
  expect(await permits(async () => 'fourth')).toBe('fourth')
})
