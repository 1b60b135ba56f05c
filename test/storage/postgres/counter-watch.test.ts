/** When an instance counts as dead, with clocks that the test moves. */
import { expect, test } from 'vitest'
import { CounterWatch } from '../../../src/storage/postgres/counter-watch.ts'

const TTL_MS = 10_000

/** Observes the counters of instance 1 at these times, in seconds; returns at which it was dead. */
function deathsOf(counters: Readonly<Record<number, number>>, answerMs = 0): number[] {
  const watch = new CounterWatch({ ttlMs: TTL_MS })
  return Object.entries(counters).flatMap(([seconds, counter]) => {
    const sentAt = Number(seconds) * 1000
    const dead = watch.observe([{ id: 1, counter }], { sentAt, answeredAt: sentAt + answerMs })
    return dead.length > 0 ? [Number(seconds)] : []
  })
}

test('an instance is dead when its counter was unchanged for the whole TTL, and not before', () => {
  expect(deathsOf({ 0: 5, 3: 5, 6: 5, 9: 5, 10: 5, 13: 5 })).toEqual([10, 13])
  expect(deathsOf({ 0: 5, 3: 5, 6: 5, 9: 6, 12: 6, 15: 6, 18: 6, 19: 6 })).toEqual([19])
})

test('the time of an answer is not counted, because it is unknown when the counter was read', () => {
  expect(deathsOf({ 0: 5, 3: 5, 6: 5, 9: 5, 10: 5, 11: 5, 12: 5 }, 1500)).toEqual([12])
})

test('time without an observation is not counted: the database may have been away for all instances', () => {
  expect(deathsOf({ 0: 5, 3: 5, 20: 5, 23: 5, 26: 5, 29: 5, 30: 5 })).toEqual([30])
})

test('each instance is observed by itself, and one that has left is forgotten', () => {
  const watch = new CounterWatch({ ttlMs: TTL_MS })
  const deaths: number[][] = []
  for (let at = 0; at <= 12_000; at += 3000) {
    const counters = [{ id: 1, counter: 7 }, { id: 2, counter: at }, ...(at === 6000 ? [] : [{ id: 3, counter: 7 }])]
    deaths.push(watch.observe(counters, { sentAt: at, answeredAt: at }).map(({ id }) => id))
  }
  expect(deaths).toEqual([[], [], [], [], [1]])
})
