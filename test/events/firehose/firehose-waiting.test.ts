/** What is published, from what waits and from the positions that it has. */
import { expect, test } from 'vitest'
import type { EventPlace, Waiting } from '../../../src/events/firehose/firehose-waiting.ts'
import { keyOf, runsOf } from '../../../src/events/firehose/firehose-waiting.ts'

const of = (seq: number) => ({ conversationId: 'a', seq })
const event = (seq: number): Waiting => {
  const stored = { seq, type: 'UserMessage', event: { seq }, json: `{"seq":${seq}}` } as never
  return { kind: 'event', stored, of: of(seq) }
}
const head = (seq: number): Waiting => ({ kind: 'head', of: of(seq) })
const passing: Waiting = { kind: 'passing', record: { type: 'AssistantDelta' } as never }

/** The places by seq: the position, and that of the event before it. */
function runs(waiting: readonly Waiting[], places: Record<number, readonly [number, number]>, range: [number, number]) {
  const byKey = new Map<string, EventPlace>(
    Object.entries(places).map(([seq, [position, previous]]) => [keyOf(of(Number(seq))), { position, previous }]),
  )
  return runsOf(waiting, byKey, '0123456789abcdef', { after: range[0], to: range[1] }).map((run) => {
    if (run.kind === 'events') return run.events.map(({ seq }) => seq)
    return run.kind === 'gap' ? `${run.gap.after}-${run.gap.to}` : `passing ${run.at}`
  })
}

test('events in a row leave together, and what passes keeps its place among them', () => {
  const places = { 1: [1, 0], 2: [2, 1], 3: [3, 2] } as const
  expect(runs([event(1), event(2), passing, event(3)], places, [0, 3])).toEqual([[1, 2], 'passing 2', [3]])
})

test('positions without a queued event are read from the logs, before, between and behind', () => {
  const places = { 4: [4, 2], 7: [7, 5] } as const
  expect(runs([event(4), event(7)], places, [0, 9])).toEqual(['0-2', [4], '4-5', [7], '7-9'])
  expect(runs([], {}, [3, 5])).toEqual(['3-5'])
  expect(runs([], {}, [3, 3])).toEqual([])
})

test('what follows the head of a log comes after all that the log has', () => {
  expect(runs([head(5), passing], { 5: [5, 4] }, [2, 6])).toEqual(['2-5', 'passing 1', '5-6'])
})

test('an event that was published before, or has no place, is not published again', () => {
  const places = { 1: [1, 0], 3: [3, 2] } as const
  expect(runs([event(1), event(2), event(3), event(3), head(1)], places, [2, 3])).toEqual([[3]])
})
