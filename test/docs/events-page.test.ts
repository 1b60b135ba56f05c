/** The examples of events in docs/events.md are events: of every type one, with the fields that its schema has. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Event, EVENT_TYPES } from '../../src/contract/events/event.ts'

const page = readFileSync(join(import.meta.dirname, '../../docs/events.md'), 'utf8')
const [, block = ''] = /^```jsonl\n(\{.*?)^```/ms.exec(page) ?? []
const lines = block.replaceAll('9f2c…64 digits', '9f2c'.padEnd(64, '0')).split('\n').filter(Boolean)
const examples = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
const ENVELOPE = ['id', 'seq', 'timestamp', 'conversation_id', 'version']

test('there is one of each type, and only the first has the envelope', () => {
  expect(examples.map(({ type }) => String(type)).toSorted()).toEqual(EVENT_TYPES.toSorted((a, b) => (a < b ? -1 : 1)))
  expect(Object.keys(examples[0]!).slice(0, ENVELOPE.length)).toEqual(ENVELOPE)
})

test.each(examples.map((example) => [example['type'], example]))(
  '%s is valid, and has no other field',
  (_, example) => {
    const envelope = Object.fromEntries(ENVELOPE.map((field) => [field, examples[0]![field]]))
    const event = { ...envelope, ...(example as object) }
    expect(Event.parse(event)).toEqual(event)
  },
)
