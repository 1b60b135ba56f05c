import { expect, test } from 'vitest'
import type { TransientDraft } from '../../src/contract/events/transient-event.ts'
import { createTransientRecord } from '../../src/events/transient-record.ts'

test('a transient event is serialised once for all its readers, and not before one reads it', () => {
  let times = 0
  const text = { toJSON: () => `text ${++times}` } as unknown as string
  const draft = { type: 'AssistantMessageDelta', text } as unknown as TransientDraft
  const record = createTransientRecord(draft, 'a-conversation', Date.parse('2026-01-01T00:00:00.000Z'))
  expect(times).toBe(0)
  const expected =
    '{"type":"AssistantMessageDelta","conversation_id":"a-conversation","timestamp":"2026-01-01T00:00:00.000Z","text":"text 1"}'
  expect([record.json, record.json]).toEqual([expected, expected])
  expect(record.seq).toBeUndefined()
})
