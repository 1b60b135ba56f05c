import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Deadlines } from '../../../src/conversations/registry/deadlines.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const HOUR_MS = 3_600_000

function setDeadlines() {
  const due: string[] = []
  const deadlines = new Deadlines()
  deadlines.watch((id) => due.push(id))
  return { due, deadlines }
}

test('a deadline fires when the clock was set forward, or the machine was suspended', () => {
  const { due, deadlines } = setDeadlines()
  deadlines.set('a', Date.now() + HOUR_MS)
  deadlines.set('b', Date.now() + 3 * HOUR_MS)
  vi.setSystemTime(Date.now() + 2 * HOUR_MS)
  vi.advanceTimersByTime(HOUR_MS / 30)
  expect(due).toEqual(['a'])
  deadlines.stop()
})

test('a deadline fires once, and not early when the clock was set back', () => {
  const { due, deadlines } = setDeadlines()
  deadlines.set('a', Date.now() + HOUR_MS)
  vi.setSystemTime(Date.now() - HOUR_MS)
  vi.advanceTimersByTime(HOUR_MS)
  expect(due).toEqual([])
  vi.advanceTimersByTime(2 * HOUR_MS)
  expect(due).toEqual(['a'])
  deadlines.stop()
})
