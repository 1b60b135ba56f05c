/** What a compaction leaves of each message. */
import { expect, test } from 'vitest'
import type { ListedMessage } from '../../../src/agent/history/message-list.ts'
import { MessageList, condenseMessages } from '../../../src/agent/history/message-list.ts'
import type { ModelMessage } from '../../../src/llm/llm.ts'

const IMAGE = { type: 'image', media_type: 'image/png', data: 'AAAA' } as const
const LONG = 'ab'.repeat(1000)
/** A text of at most so many characters keeps a note besides them. */
const FEW = 100

const said = (text: string): ModelMessage => ({ role: 'user', content: [{ type: 'text', text }] })
const entry = (seq: number, kind: ListedMessage['kind'], message: ModelMessage = said(`${kind} ${seq}`)) =>
  ({ seq, kind, message }) satisfies ListedMessage
const range = (
  fields: Partial<Parameters<typeof condenseMessages>[2]> = {},
): Parameters<typeof condenseMessages>[2] => ({
  forgotten_through_seq: 10,
  kept_message_seqs: [],
  shortened_through_seq: 0,
  max_result_chars: FEW,
  summary: 'What was done.',
  ...fields,
})
const shown = (entries: readonly ListedMessage[]): string[] => entries.map(({ kind, seq }) => `${kind} ${seq}`)

test.each<[ListedMessage['kind'], boolean]>([
  ['user', true],
  ['move', true],
  ['schema', true],
  ['summary', false],
  ['other', false],
])('a message of the kind %s can be kept: %j', (kind, canBe) => {
  const kept = condenseMessages([entry(3, kind), entry(11, kind)], 0, range({ kept_message_seqs: [3] }))
  expect(shown(kept)).toEqual([...(canBe ? [`${kind} 3`] : []), 'summary 10', `${kind} 11`])
  expect(shown(condenseMessages([entry(3, kind)], 0, range()))).toEqual(['summary 10'])
})

test('the last event that is forgotten is, and the one after it is not', () => {
  const all = [9, 10, 11, 12].map((seq) => entry(seq, 'other'))
  expect(shown(condenseMessages(all, 0, range()))).toEqual(['summary 10', 'other 11', 'other 12'])
})

test('a compaction that comes after one that forgot more leaves out nothing, and still shortens', () => {
  const result = { role: 'tool', toolCallId: 'a', content: LONG } as const
  const all = [entry(3, 'user'), { ...entry(11, 'other', result), origin: { eventId: 'i', path: undefined } }]
  for (const forgotten of [10, 11]) {
    const after = condenseMessages(all, forgotten, range({ shortened_through_seq: 11 }))
    expect(shown(after)).toEqual(['user 3', 'other 11'])
    expect(JSON.stringify(after)).toContain('1900 characters were left out')
  }
})

test('messages that are kept are shortened, except for a schema and an answer', () => {
  const answer: ModelMessage = { role: 'assistant', text: LONG, toolCalls: [] }
  const all = [entry(1, 'user', said(LONG)), entry(2, 'schema', said(LONG)), entry(3, 'user', answer)]
  const keep = { kept_message_seqs: [1, 2, 3], max_message_chars: FEW }
  const [first, ...others] = condenseMessages(all, 0, range(keep))
  expect(JSON.stringify(first)).toContain('1900 characters were left out')
  expect(others.slice(0, 2)).toEqual(all.slice(1))
  expect(condenseMessages(all, 0, range({ ...keep, max_message_chars: undefined })).slice(0, 3)).toEqual(all)
})

test.each<[string, ModelMessage, ListedMessage['origin'], RegExp | 'left out' | 'as it was']>([
  [
    'a long result',
    { role: 'tool', toolCallId: 'a', content: LONG },
    { eventId: 'i', path: undefined },
    /in event i of/,
  ],
  [
    'a long result with a file',
    { role: 'tool', toolCallId: 'a', content: LONG },
    { eventId: 'i', path: '/all' },
    /file \/all has/,
  ],
  ['a short result', { role: 'tool', toolCallId: 'a', content: 'ok' }, { eventId: 'i', path: undefined }, 'as it was'],
  ['a long result without a place', { role: 'tool', toolCallId: 'a', content: LONG }, undefined, 'as it was'],
  ['a message that repeats images', { role: 'user', content: [IMAGE], repeatsImages: true }, undefined, 'left out'],
  ['a message with an image of the user', { role: 'user', content: [IMAGE] }, undefined, 'as it was'],
  ['an answer', { role: 'assistant', text: LONG, toolCalls: [] }, undefined, 'as it was'],
])('of %s up to the seq of shortening, and not after it, is shown less', (_what, message, origin, expected) => {
  const all = [20, 21].map((seq): ListedMessage => ({ seq, kind: 'other', message, origin }))
  const after = condenseMessages(all, 10, range({ shortened_through_seq: 20 }))
  expect(after.at(-1)).toEqual(all[1])
  if (expected === 'left out') expect(after).toHaveLength(1)
  else if (expected === 'as it was') expect(after[0]).toEqual(all[0])
  else expect(JSON.stringify(after[0])).toMatch(expected)
})

test('a list is another one after a removal and a compaction, and the one that was sent stays as it was', () => {
  const list = new MessageList()
  for (const seq of [1, 2, 12]) list.push(entry(seq, 'user'))
  const sent = list.messages
  expect(list.removeLast(said('not in it'))).toBe(-1)
  expect(list.messages).toBe(sent)
  expect(list.removeLast(list.messages[1]!)).toBe(1)
  expect([shown(list.entries), list.messages.length, sent.length]).toEqual([['user 1', 'user 12'], 2, 3])
  list.insert(1, entry(1, 'other'))
  expect(shown(list.entries)).toEqual(['user 1', 'other 1', 'user 12'])
  list.condense(range())
  expect([shown(list.entries), list.messages.length, list.forgottenThrough]).toEqual([['summary 10', 'user 12'], 2, 10])
  list.condense(range({ forgotten_through_seq: 5 }))
  expect([shown(list.entries), list.forgottenThrough]).toEqual([['summary 10', 'user 12'], 10])
})
