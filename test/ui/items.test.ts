/** The rows of a conversation: the same, however its events arrive. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Event } from '../../src/contract/events/event.ts'
import { waitingSeqs } from '../../src/ui/state/unread.ts'
import { isSilent, Items, Live } from '../../src/ui/state/items.ts'

const at = (seq: number, event: object) =>
  ({
    id: `event-${seq}`,
    seq,
    timestamp: '2026-01-31T12:00:00.000Z',
    conversation_id: 'c',
    version: 1,
    ...event,
  }) as Event

/** Events of three runs: messages, calls, requests with an answer, and events without a row. */
const EVENTS: Event[] = [0, 10, 20].flatMap((first) => [
  at(first + 1, { type: 'UserMessage', content: [{ type: 'text', text: 'go' }], run: true }),
  at(first + 2, { type: 'AssistantMessage', text: 'I run it.', content: [], message_id: `m${first}` }),
  at(first + 3, { type: 'ToolUse', tool_use_id: `call-${first}`, name: 'Bash', input: {} }),
  at(first + 4, { type: 'ToolUse', tool_use_id: `other-${first}`, name: 'Bash', input: {} }),
  at(first + 5, { type: 'RequestOpened', request_id: `asked-${first}`, kind: 'permission', tool_use_ids: [] }),
  at(first + 6, { type: 'RequestAnswered', request_id: `asked-${first}`, kind: 'permission' }),
  at(first + 7, { type: 'ToolResult', tool_use_id: `other-${first}`, output: 'b', is_error: false }),
  at(first + 8, { type: 'ToolResult', tool_use_id: `call-${first}`, output: 'a', is_error: false }),
  at(first + 9, { type: 'SecretsUpdate', added: [], removed: [] }),
  at(first + 10, { type: 'Result', stop_reason: 'completed', steps: 1 }),
])

const whole = () => {
  const items = new Items()
  items.append(EVENTS)
  return items.rows
}

test('a call has its result, and a request its answer, in one row', () => {
  expect(whole().map(({ kind }) => kind)).toEqual(
    [0, 1, 2].flatMap(() => ['event', 'event', 'call', 'call', 'request', 'event']),
  )
  for (const row of whole()) {
    if (row.kind === 'call') expect(row.result?.tool_use_id).toBe(row.key)
    if (row.kind === 'request') expect(row.end?.request_id).toBe(row.key)
  }
})

test('the rows are the same whether events were read in pages, live, or both', () => {
  const cut = fc.integer({ min: 0, max: EVENTS.length })
  fc.assert(
    fc.property(fc.array(cut, { maxLength: 5 }), fc.array(cut, { maxLength: 5 }), cut, (older, newer, middle) => {
      const items = new Items()
      const parts = (cuts: number[], from: number, to: number) => {
        const ends = [from, ...cuts.filter((end) => end > from && end < to).toSorted((a, b) => a - b), to]
        return ends.slice(1).map((end, index) => EVENTS.slice(ends[index], end))
      }
      for (const part of parts(newer, middle, EVENTS.length)) items.append(part)
      for (const part of parts(older, 0, middle).toReversed()) items.prepend(part)
      expect(items.rows).toEqual(whole())
    }),
  )
})

test('only so many rows stay in memory, the newest', () => {
  const items = new Items()
  items.append(EVENTS)
  expect(items.trim(5)).toBe(true)
  expect(items.rows).toEqual(whole().slice(-5))
  expect(items.trim(5)).toBe(false)
})

test('a call that runs longer than the rows are kept has ended when it is read again', () => {
  const items = new Items()
  const [use, result] = [
    EVENTS[2]!,
    at(31, { type: 'ToolResult', tool_use_id: 'call-0', output: 'late', is_error: false }),
  ]
  items.append([use, ...EVENTS.slice(10)])
  items.append([result])
  items.trim(1)
  items.prepend([use])
  expect(items.rows[0]).toMatchObject({ kind: 'call', result: { output: 'late' } })
})

test('outputs of calls that were forgotten are not kept in memory', async () => {
  const items = new Items()
  const results: WeakRef<object>[] = []
  for (let seq = 1; seq < 40; seq += 2) {
    const result = at(seq + 1, {
      type: 'ToolResult',
      tool_use_id: `c${seq}`,
      output: 'x'.repeat(1000),
      is_error: false,
    })
    items.append([at(seq, { type: 'ToolUse', tool_use_id: `c${seq}`, name: 'Bash', input: {} }), result])
    items.trim(2)
    results.push(new WeakRef(result))
  }
  // What a weak reference has returned lives until the current work has ended.
  await new Promise(setImmediate)
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
  expect(results.filter((result) => result.deref() !== undefined).length).toBeLessThanOrEqual(3)
})

test('a call or request that was forgotten and is read again has still ended', () => {
  const items = new Items()
  items.append(EVENTS)
  items.trim(1)
  // A page ends between the calls and their results.
  items.prepend(EVENTS.slice(25, 29))
  items.prepend(EVENTS.slice(20, 25))
  expect(items.rows.slice(0, 5)).toEqual(whole().slice(12, 17))
})

const delta = (message_id: string, fields: object) =>
  ({ type: 'AssistantDelta', conversation_id: 'c', timestamp: '', message_id, index: 0, offset: 0, ...fields }) as const

test('live text ends with its message, its failed attempt, or the next message', () => {
  const live = new Live()
  live.take(delta('one', { text_delta: 'Hel' }))
  live.take(delta('one', { text_delta: 'lo' }))
  expect(live.text).toBe('Hello')
  live.endMessage('another')
  expect(live.text).toBe('Hello')
  live.take(delta('two', { reasoning_delta: 'hm' }))
  expect([live.text, live.reasoning]).toEqual(['', 'hm'])
  live.take({ type: 'AssistantAborted', conversation_id: 'c', timestamp: '', message_id: 'two' })
  expect([live.text, live.reasoning]).toEqual(['', ''])
})

test('text of a subagent is not shown as that of the agent', () => {
  const live = new Live()
  live.take(delta('one', { text_delta: 'secret', parent_tool_use_id: 'call' }))
  expect(live.text).toBe('')
})

describe('a message that was sent while the agent works', () => {
  const message = (seq: number) => ({ id: `m${seq}`, seq, type: 'UserMessage', content: [] })
  const answer = (seq: number, fields = {}) => ({
    id: `a${seq}`,
    seq,
    type: 'AssistantMessage',
    text: 'x',
    content: [],
    ...fields,
  })
  const waiting = (events: object[]) => {
    const items = new Items()
    items.append(events as Event[])
    return [...waitingSeqs(items.rows)].toSorted((a, b) => a - b)
  }

  test('waits until an answer has read it', () => {
    expect(waiting([message(1)]), 'the first one has started the run').toEqual([])
    expect(waiting([message(1), message(2)])).toEqual([2])
    expect(waiting([message(1), answer(2, { read_through: 1 }), message(3)])).toEqual([3])
    expect(waiting([message(1), message(2), answer(3, { read_through: 1 })])).toEqual([2])
    expect(waiting([message(1), message(2), answer(3)])).toEqual([])
    expect(waiting([message(1), { id: 'r', seq: 2, type: 'Result' }, message(3), message(4)])).toEqual([4])
  })

  test('is not read by the answer of a subagent, and waits no more once it is taken back', () => {
    expect(waiting([message(1), answer(2), message(3), answer(4, { agent_name: 'reviewer' })])).toEqual([3])
    const withdrawn = { id: 'w', seq: 4, type: 'MessageWithdrawn', message_seq: 3 }
    expect(waiting([message(1), answer(2), message(3), withdrawn])).toEqual([])
  })
})

test('an answer that only made calls is kept for its time, and says nothing', () => {
  const items = new Items()
  items.append([
    at(1, { type: 'AssistantMessage', text: '', content: [], message_id: 'm', duration_ms: 5 }),
    EVENTS[1]!,
  ])
  expect(items.rows.map(isSilent)).toEqual([true, false])
})
