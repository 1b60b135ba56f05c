import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Deadlines } from '../../../src/conversations/registry/deadlines.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const HOUR_MS = 3_600_000

function setDeadlines() {
  const due: string[] = []
  const deadlines = new Deadlines()
  deadlines.watch(async (id) => void due.push(id))
  return { due, deadlines }
}

test('a deadline fires when the clock was set forward, or the machine was suspended', async () => {
  const { due, deadlines } = setDeadlines()
  deadlines.set('a', Date.now() + HOUR_MS)
  deadlines.set('b', Date.now() + 3 * HOUR_MS)
  vi.setSystemTime(Date.now() + 2 * HOUR_MS)
  await vi.advanceTimersByTimeAsync(HOUR_MS / 30)
  expect(due).toEqual(['a'])
  deadlines.stop()
})

test('a deadline fires once, and not early when the clock was set back', async () => {
  const { due, deadlines } = setDeadlines()
  deadlines.set('a', Date.now() + HOUR_MS)
  vi.setSystemTime(Date.now() - HOUR_MS)
  await vi.advanceTimersByTimeAsync(HOUR_MS)
  expect(due).toEqual([])
  await vi.advanceTimersByTimeAsync(2 * HOUR_MS)
  expect(due).toEqual(['a'])
  deadlines.stop()
})

test('the next deadline fires after one that was met, and one that its call ends is looked at again in a minute', async () => {
  const { due, deadlines } = setDeadlines()
  const now = Date.now()
  deadlines.setLeft('a', [now - 1, now + HOUR_MS])
  await vi.advanceTimersByTimeAsync(HOUR_MS / 60)
  expect(due).toEqual(['a'])
  deadlines.setLeft('a', [now + HOUR_MS])
  await vi.advanceTimersByTimeAsync(HOUR_MS)
  expect(due).toEqual(['a', 'a'])
  deadlines.setLeft('a', [])
  await vi.advanceTimersByTimeAsync(2 * HOUR_MS)
  expect(due).toEqual(['a', 'a'])
  deadlines.stop()
})

test('at most 64 of many deadlines that pass at once are worked on at the same time', async () => {
  const deadlines = new Deadlines()
  const begun: (() => void)[] = []
  for (let n = 0; n < 200; n++) deadlines.set(`${n}`, Date.now() - n)
  deadlines.watch(() => new Promise((resolve) => void begun.push(resolve)))
  await vi.advanceTimersByTimeAsync(0)
  expect(begun).toHaveLength(64)
  for (let done = 0; done < 200; done++) {
    begun[done]!()
    await vi.advanceTimersByTimeAsync(0)
    expect(begun).toHaveLength(Math.min(200, 65 + done))
  }
  deadlines.stop()
})
