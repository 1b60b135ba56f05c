/** Results that could not be stored are stored later, and a call does not run again meanwhile. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { UnstoredResults } from '../../src/agent/unstored-results.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** Longer than the first wait after a failure. */
const LATER_MS = 1000

function setUp() {
  const seen = { stored: [] as string[], listeners: new Set<() => void>() }
  const disk = { fails: false }
  const results = new UnstoredResults<{ toolUseId: string }, string>({
    store: async ({ toolUseId }) => {
      if (disk.fails) throw new Error('there is no room')
      seen.stored.push(toolUseId)
      results.forget(toolUseId)
    },
    onLogClosed: (listener) => {
      seen.listeners.add(listener)
      return () => seen.listeners.delete(listener)
    },
  })
  return { results, seen, disk }
}

test('a result is kept until it is stored', () => {
  const { results } = setUp()
  results.keep('a', 'done')
  expect([results.has('a'), results.get('a'), results.has('b'), results.get('b')]).toEqual([
    true,
    'done',
    false,
    undefined,
  ])
  results.forget('a')
  expect([results.has('a'), results.get('a')]).toEqual([false, undefined])
})

test('writes that failed are retried in their order, and then no more', async () => {
  const { results, seen } = setUp()
  for (const toolUseId of ['b', 'a']) results.tryLater({ toolUseId })
  expect(seen.listeners.size).toBe(1)
  await vi.advanceTimersByTimeAsync(LATER_MS)
  expect(seen.stored).toEqual(['b', 'a'])
  expect([seen.listeners.size, vi.getTimerCount()]).toEqual([0, 0])
  await results.storeAll()
  expect(seen.stored).toEqual(['b', 'a'])
})

test('a write that a run made meanwhile is not made again, and those that are left are', async () => {
  const { results, seen } = setUp()
  for (const toolUseId of ['a', 'b']) results.tryLater({ toolUseId })
  results.forget('a')
  expect(seen.listeners.size).toBe(1)
  await vi.advanceTimersByTimeAsync(LATER_MS)
  expect(seen.stored).toEqual(['b'])
})

test('nothing is retried when all is stored, or when the log is closed', async () => {
  const { results, seen, disk } = setUp()
  results.tryLater({ toolUseId: 'a' })
  results.forget('a')
  expect([seen.listeners.size, vi.getTimerCount()]).toEqual([0, 0])
  disk.fails = true
  results.tryLater({ toolUseId: 'b' })
  await expect(results.storeAll()).rejects.toThrow('no room')
  for (const close of seen.listeners) close()
  expect(vi.getTimerCount()).toBe(0)
})
