/** The text so far of messages that are being streamed, for readers who join in the middle. */
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { AssistantDelta } from '../../src/contract/events/transient-event.ts'
import { LiveMessages } from '../../src/events/live-messages.ts'
import { effort } from '../support/patience.ts'

const delta = (fields: Partial<AssistantDelta>): AssistantDelta => ({
  type: 'AssistantDelta',
  conversation_id: 'conversation',
  timestamp: '2026-01-31T12:00:00.000Z',
  message_id: 'one',
  index: 0,
  offset: 0,
  ...fields,
})

/** As a reader gets them. */
const shownBy = (messages: LiveMessages): AssistantDelta[] =>
  messages.soFar('conversation', 0).map(({ json }) => JSON.parse(json) as AssistantDelta)

test('a reader gets the whole text so far of each part, with the names of its latest delta', () => {
  const messages = new LiveMessages()
  expect(messages.isEmpty).toBe(true)
  messages.add(delta({ text_delta: 'Hel', run_id: 'run' }))
  messages.add(delta({ reasoning_delta: 'Hmm.', run_id: 'run' }))
  messages.add(delta({ index: 1, tool_input_delta: '{"a":', tool_use_id: 'call', run_id: 'run' }))
  messages.add(delta({ text_delta: 'lo', offset: 3, run_id: 'run' }))
  messages.add(delta({ index: 1, tool_input_delta: '1}', offset: 5, tool_use_id: 'call', tool_name: 'Bash' }))
  expect(messages.isEmpty).toBe(false)
  expect(shownBy(messages)).toMatchObject([
    { message_id: 'one', index: 0, offset: 0, text_delta: 'Hello', run_id: 'run' },
    { message_id: 'one', index: 0, offset: 0, reasoning_delta: 'Hmm.' },
    { message_id: 'one', index: 1, offset: 0, tool_input_delta: '{"a":1}', tool_use_id: 'call', tool_name: 'Bash' },
  ])
})

test('after a gap the text begins behind it, and the part is the newest', () => {
  const messages = new LiveMessages()
  messages.add(delta({ text_delta: 'lost' }))
  messages.add(delta({ text_delta: 'kept', offset: 9 }))
  expect(shownBy(messages)).toMatchObject([{ offset: 9, text_delta: 'kept' }])
})

test('a message is forgotten with all its parts, and no other', () => {
  const messages = new LiveMessages()
  messages.add(delta({ text_delta: 'a' }))
  messages.add(delta({ text_delta: 'b', index: 1 }))
  messages.add(delta({ text_delta: 'c', message_id: 'two' }))
  messages.forget('one')
  expect(shownBy(messages)).toMatchObject([{ message_id: 'two', text_delta: 'c' }])
  messages.forgetAll()
  expect(messages.isEmpty).toBe(true)
})

describe('at most so much is kept', () => {
  test('of 64 parts: the oldest goes first', () => {
    const messages = new LiveMessages()
    for (let index = 0; index < 66; index++) messages.add(delta({ index, text_delta: 'x' }))
    expect(shownBy(messages).map(({ index }) => index)).toEqual(Array.from({ length: 64 }, (_, at) => at + 2))
  })

  test.each([
    ['all of a part of 256 Ki', 0, 256 * 1024],
    ['half of that of one with one character more', 1, 128 * 1024],
  ])('%s', (_what, more, kept) => {
    const messages = new LiveMessages()
    const whole = 256 * 1024 + more
    messages.add(delta({ text_delta: 'a'.repeat(whole - 1) }))
    messages.add(delta({ text_delta: 'b', offset: whole - 1 }))
    const [{ offset, text_delta = '' } = delta({})] = shownBy(messages)
    expect([offset, text_delta.length, text_delta.at(-1)]).toEqual([whole - kept, kept, 'b'])
  })

  test('property: of one part, its end: at least the last 128 Ki, and all of a shorter one', () => {
    const length = fc.oneof(fc.nat(3), fc.integer({ min: 1, max: 200_000 }))
    fc.assert(
      fc.property(fc.array(length, { minLength: 1, maxLength: 12 }), fc.nat(600), (lengths, many) => {
        const messages = new LiveMessages()
        let whole = ''
        for (const [at, size] of [...lengths, ...Array.from({ length: many }, () => 1)].entries()) {
          const text = String.fromCharCode(97 + (at % 26)).repeat(size)
          messages.add(delta({ text_delta: text, offset: whole.length }))
          whole += text
        }
        const { offset, text_delta = '' } = shownBy(messages)[0]!
        expect(offset + text_delta.length).toBe(whole.length)
        expect(whole.slice(offset) === text_delta).toBe(true)
        expect(text_delta.length).toBeGreaterThanOrEqual(Math.min(whole.length, 128 * 1024))
        expect(text_delta.length).toBeLessThanOrEqual(256 * 1024)
      }),
      { numRuns: effort(8, 1000) },
    )
  })
})
