import { expect, test } from 'vitest'
import type { EventDraft } from '../../../src/contract/events/event.ts'
import { foldLog } from '../../../src/conversations/registry/read-state.ts'
import type { State } from '../../../src/state/state.ts'
import { EMPTY_STATE, fold } from '../../../src/state/state.ts'
import type { StoredLog } from '../../../src/events/event-store.ts'
import { stored, userMessage } from '../events.ts'

const DRAFTS = ['one', 'two', 'three'].map((text) => userMessage(text))

const folded = (drafts: readonly EventDraft[]): State =>
  drafts.reduce((state, draft, index) => fold(state, stored(draft, index + 1)), EMPTY_STATE)

/** A log of these events that knows from where it was read. */
function logOf(): { readonly log: StoredLog; readonly readFrom: number[] } {
  const readFrom: number[] = []
  const events = DRAFTS.map((draft, index) => ({ seq: index + 1, event: stored(draft, index + 1) }))
  const read = ({ afterSeq = 0 }: { readonly afterSeq?: number }) => {
    readFrom.push(afterSeq)
    return Promise.resolve({ events: events.filter(({ seq }) => seq > afterSeq), scannedTo: undefined })
  }
  return { log: { head: events.length, read } as unknown as StoredLog, readFrom }
}

test('a noted state continues with the events after it, and one of the last event with none', async () => {
  const whole = folded(DRAFTS)
  const { log, readFrom } = logOf()
  expect(await foldLog(log, whole)).toBe(whole)
  expect(readFrom).toEqual([])
  expect(await foldLog(log, folded(DRAFTS.slice(0, 2)))).toEqual(whole)
  expect(readFrom).toEqual([2])
  expect(await foldLog(log, undefined)).toEqual(whole)
  expect(readFrom).toEqual([2, 0])
})

test('a noted state of more events than the log has is of another log: the fold begins at its first event', async () => {
  const { log, readFrom } = logOf()
  expect(await foldLog(log, folded([...DRAFTS, userMessage('four')]))).toEqual(folded(DRAFTS))
  expect(readFrom).toEqual([0])
  expect(await foldLog({ ...log, head: 0 }, undefined)).toBe(EMPTY_STATE)
})
