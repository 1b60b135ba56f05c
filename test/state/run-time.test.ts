/** The time that a run has worked, which its limit counts. */
import { expect, test } from 'vitest'
import type { Status } from '../../src/contract/events/status.ts'
import { workedMs } from '../../src/state/run-state.ts'
import type { State } from '../../src/state/state-shape.ts'
import { fold } from '../../src/state/state.ts'
import { START_MS, folded, runId, status, stored } from '../conversations/events.ts'

const at = (seconds: number) => new Date(START_MS + 1000 * seconds).toISOString()

type Step = readonly [second: number, status: Status, reason?: string]

/** The run began at second 0, and then had each status from this second on. */
function stateAfter(...later: Step[]): State {
  const steps: readonly Step[] = [[0, 'running'], ...later]
  let state = { ...folded([]), updatedAt: at(0) }
  let before: Status = 'idle'
  for (const [index, [second, next, reason = 'message']] of steps.entries()) {
    const draft = { ...status(next, before), run_id: runId, reason }
    state = fold(state, { ...stored(draft, index + 1), timestamp: at(second) })
    before = next
  }
  return state
}

test('a run works from its start to the last event, and a clock that is set back does not count', () => {
  const state = stateAfter()
  expect(workedMs({ ...state, updatedAt: at(5) })).toBe(5000)
  expect(workedMs({ ...state, updatedAt: at(-5) })).toBe(0)
  expect(workedMs({ run: undefined, updatedAt: at(5) })).toBe(0)
})

test('the time in which it waits for the user does not count, however often it waits', () => {
  const waiting = stateAfter([2, 'waiting_for_confirmation'])
  expect(waiting.run?.activeMs).toBe(2000)
  const again = stateAfter([2, 'waiting_for_confirmation'], [7, 'waiting_for_input'])
  expect(again.run?.activeMs).toBe(2000)
  const working = stateAfter([2, 'waiting_for_confirmation'], [10, 'running'])
  expect(workedMs({ ...working, updatedAt: at(13) })).toBe(5000)
})

test('the time in the queue does not count', () => {
  const queued = stateAfter([3, 'running', 'queued'], [8, 'running', 'dequeued'])
  expect(workedMs({ ...queued, updatedAt: at(9) })).toBe(1000)
})
