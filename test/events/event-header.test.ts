/** The first fields of a stored event are read without its other fields, and only if they are as this server writes them. */
import { expect, test } from 'vitest'
import type { StoredEvent } from '../../src/events/event-store.ts'
import { headerOf, isMarkedAsSubagents, parseHeader } from '../../src/events/event-header.ts'

const HEADER = { seq: 7, type: 'Result', id: 'i', timestamp: 't', source: 'agent' }
const written = (fields: object = {}) => `${JSON.stringify({ ...HEADER, ...fields }).slice(0, -1)},`
const eventOf = (json: string) => ({ seq: 7, json }) as StoredEvent

test('a header has the fields of the event, whatever follows them', () => {
  expect(parseHeader(`${written()}"version":3`)).toEqual(HEADER)
  expect(headerOf(eventOf(`${written()}"text":"${'x'.repeat(1000)}"}`))).toEqual(HEADER)
  expect(parseHeader(written({ seq: 1234567890123456 }))?.seq).toBe(1234567890123456)
})

test.each<readonly [what: string, json: string]>([
  ['an empty text', ''],
  ...Object.entries({ seq: 0, type: '', id: '', timestamp: '', source: '' }).map(
    ([name, value]) => [`an empty ${name}`, written({ [name]: value })] as const,
  ),
  ...['type', 'id', 'timestamp', 'source'].flatMap((name) => [
    [`an escape in ${name}`, written({ [name]: 'a\nb' })] as const,
    [`a quotation mark in ${name}`, written({ [name]: 'a"b' })] as const,
  ]),
  ['a seq of 17 digits', written().replace('7', '12345678901234567')],
  ['a seq that is a text', written({ seq: '7' })],
  ['something before it', ` ${written()}`],
  ['nothing behind it', JSON.stringify(HEADER)],
])('%s is no header', (_, json) => {
  expect(parseHeader(json)).toBeUndefined()
  expect(() => headerOf(eventOf(json))).toThrow('Event 7 was stored without its header.')
})

test('an event is of a subagent if its call is named behind the conversation, and nowhere else', () => {
  const own = (rest: string) => isMarkedAsSubagents(eventOf(`${written()}${rest}`))
  const mark = '"parent_tool_use_id":"c"'
  expect(own(`"version":3,"conversation_id":"c1",${mark},"text":"a"}`)).toBe(true)
  expect(own(`"version":12,"conversation_id":"c1",${mark}}`)).toBe(true)
  for (const rest of [
    `"version":3,"conversation_id":"c1","text":"a",${mark}}`,
    `"version":3,"conversation_id":"",${mark}}`,
    `"version":3,"conversation_id":"${'c'.repeat(101)}",${mark}}`,
    `"version":3,"conversation_id":"a\\"b",${mark}}`,
    `"version":,"conversation_id":"c1",${mark}}`,
    `"version":1234567890,"conversation_id":"c1",${mark}}`,
    `"content":{"version":3,"conversation_id":"c1",${mark}}}`,
    `"version":3,"conversation_id":"c1"}`,
  ])
    expect(own(rest), rest).toBe(false)
})
