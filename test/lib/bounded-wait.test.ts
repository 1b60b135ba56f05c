import { spawn } from 'node:child_process'
import { getEventListeners, once } from 'node:events'
import { setImmediate as nextRound } from 'node:timers/promises'
import { expect, test } from 'vitest'
import {
  MAX_TIMER_MS,
  orAborted,
  settlesWithin,
  sleepUnlessAborted,
  timerMs,
  withinTime,
} from '../../src/lib/bounded-wait.ts'

const untilAborted = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))

test('work that takes too long is aborted, as is work whose signal is aborted; work done in time is left alone', async () => {
  const controller = new AbortController()
  await expect(withinTime(10, controller.signal, untilAborted)).rejects.toMatchObject({ name: 'TimeoutError' })
  expect(await withinTime(60_000, controller.signal, async () => 'done')).toBe('done')
  expect(getEventListeners(controller.signal, 'abort')).toEqual([])
  const broken = withinTime(60_000, controller.signal, untilAborted)
  controller.abort(new Error('no longer'))
  await expect(broken).rejects.toThrow('no longer')
  await expect(withinTime(60_000, controller.signal, untilAborted)).rejects.toThrow('no longer')
})

test('work whose result came while the whole process was stopped is not late', async () => {
  const { stdout } = spawn('sh', ['-c', 'sleep 0.1; echo here'], { stdio: ['ignore', 'pipe', 'ignore'] })
  const work = (signal: AbortSignal) => orAborted(once(stdout, 'data'), signal)
  const result = withinTime(30, new AbortController().signal, work)
  // As SIGSTOP and SIGCONT do, and timers are next.
  setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300))
  expect(String(await result)).toBe('here\n')
})

test('work that needs a moment is not late because the whole process was stopped for longer than its time', async () => {
  const work = async () => {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300)
    for (let rounds = 0; rounds < 5; rounds++) await nextRound()
    return 'done'
  }
  expect(await settlesWithin(100, nextRound().then(work))).toBe(true)
  const bounded = withinTime(100, new AbortController().signal, (signal) => orAborted(nextRound().then(work), signal))
  expect(await bounded).toBe('done')
  expect(await settlesWithin(100, new Promise(() => {}))).toBe(false)
})

test('a sleep ends in time, or at once when its signal is aborted, and neither fails nor leaves a listener', async () => {
  const controller = new AbortController()
  await sleepUnlessAborted(1, controller.signal)
  expect(getEventListeners(controller.signal, 'abort')).toEqual([])
  const long = sleepUnlessAborted(Infinity, controller.signal)
  controller.abort(new Error('no longer'))
  await long
  await sleepUnlessAborted(Infinity, controller.signal)
})

test('the duration of a timer is one that Node can wait, whatever was computed', () => {
  expect([-1, -Infinity, NaN, 0, 5.5, 2 ** 31, Infinity].map(timerMs)).toEqual([
    0,
    0,
    0,
    0,
    5.5,
    MAX_TIMER_MS,
    MAX_TIMER_MS,
  ])
})
