/** What keeps a conversation from starting a run, whatever its status is. */
import { expect, test } from 'vitest'
import { EVENT_VERSION } from '../../src/contract/events/event.ts'
import { refuseNewer, refuseSecond } from '../../src/state/refusals.ts'
import { EMPTY_STATE } from '../../src/state/state-shape.ts'

test('a conversation that a newer server wrote is not run, and one of this version is', () => {
  expect(refuseNewer({ ...EMPTY_STATE, version: EVENT_VERSION })).toBeUndefined()
  expect(refuseNewer({ ...EMPTY_STATE, version: EVENT_VERSION + 1 })?.code).toBe('conversation_from_newer_version')
})

test('a run that began after the event that the client knows is named, and nothing is refused without one', () => {
  const state = { ...EMPTY_STATE, lastRun: { id: 'run', startSeq: 5 } }
  expect(refuseSecond(state, 4)).toMatchObject({ code: 'already_continued', details: { run_id: 'run' } })
  expect(refuseSecond(state, 5)).toBeUndefined()
  expect(refuseSecond(state)).toBeUndefined()
  expect(refuseSecond(EMPTY_STATE, 0)).toBeUndefined()
})
