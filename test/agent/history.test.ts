import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Event, EventDraft } from '../../src/contract/events/event.ts'
import { findFaults } from '../../src/agent/find-faults.ts'
import { History } from '../../src/agent/history/history.ts'
import { decide } from '../../src/state/intents.ts'
import type { State } from '../../src/state/state.ts'
import { EMPTY_STATE, fold } from '../../src/state/state.ts'
import type { ModelMessage } from '../../src/llm/llm.ts'
import { answered, status, stored, systemInit, toolResult, toolUse, userMessage } from '../conversations/events.ts'
import { effort } from '../support/patience.ts'

const render = (_: string, output: unknown) => (typeof output === 'string' ? output : JSON.stringify(output))

function historyOf(events: readonly Event[]): History {
  const history = new History(render)
  for (const event of events) history.add(event)
  return history
}

test('a message that came after the request to continue follows it, also when the log is read again', () => {
  const answer = (text: string, read_through: number) => ({ ...answered({ text }), read_through })
  const events = [systemInit(), userMessage('one'), answer('1', 2), userMessage('two'), answer('2', 3)]
  const first = events.slice(0, 3).map((draft, at) => stored(draft, at + 1))
  const live = historyOf(first)
  const sent = [...live.messagesToSend()]
  expect(live.messagesToSend()).toEqual(historyOf(first).upcoming())
  for (const [at, draft] of events.slice(3).entries()) live.add(stored(draft, at + 4))
  const again = historyOf(events.map((draft, at) => stored(draft, at + 1))).messages
  expect(again).toEqual(live.messages)
  expect(again.slice(0, sent.length)).toEqual(sent)
})

test('a message that came while the model wrote an answer is named in the request to continue: the answer did not know it', () => {
  const answer = { ...answered({ text: 'Nearly done.' }), read_through: 2 }
  const texts = (...drafts: EventDraft[]) => {
    const history = historyOf([systemInit(), ...drafts].map((draft, at) => stored(draft, at + 1)))
    expect(history.upcoming()).toEqual(history.messagesToSend())
    return JSON.stringify(history.messages.at(-1))
  }
  expect(texts(userMessage('work'), userMessage('stop that'), answer)).toContain('came while you were writing it')
  expect(texts(userMessage('work'), answer)).toContain('"Continue."')
})

test('a request to continue that got no answer is taken back when something else comes', () => {
  const drafts: EventDraft[] = [systemInit(), userMessage('one'), { ...answered({ text: '1' }), read_through: 2 }]
  const live = historyOf(drafts.map((draft, at) => stored(draft, at + 1)))
  expect(live.messagesToSend()).toHaveLength(3)
  live.add(stored(userMessage('two'), 4))
  const again = historyOf([...drafts, userMessage('two')].map((draft, at) => stored(draft, at + 1)))
  expect(live.messagesToSend()).toEqual(again.messages)
  expect(live.messages.filter(({ role }) => role === 'user')).toHaveLength(2)
  expect(live.size.of(live.messages, () => 0)).toBe(again.size.of(again.messages, () => 0))
})

test('a request for an output has another kind if it has a schema, which a compaction keeps', () => {
  const request: EventDraft = { type: 'OutputRequest', source: 'environment' }
  const schema = { type: 'object' }
  const drafts = [systemInit(), { ...request, run_id: 'r', output_schema: schema }, { ...request, run_id: 'r' }]
  const { entries } = historyOf(drafts.map((draft, at) => stored(draft, at + 1)))
  expect(entries.map(({ seq, kind, runId }) => [seq, kind, runId])).toEqual([
    [2, 'schema', 'r'],
    [3, 'other', 'r'],
  ])
})

/** What happens in a conversation, as its writer stores it: a list of batches, each durable as a whole or not at all. */
type Batch = readonly EventDraft[]

const text = fc.oneof(fc.constant(''), fc.string({ unit: 'grapheme', maxLength: 20 }))
const message = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }).map((words): Batch => [userMessage(words)])
const meanwhile = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: message },
    { weight: 1, arbitrary: fc.constant<Batch>([{ type: 'ConfigUpdate', source: 'user', changes: { title: 'new' } }]) },
  ),
  { maxLength: 2 },
)
const picture = { type: 'image', media_type: 'image/png', data: 'iVBORw0=' } as const
const output = fc.oneof(
  { weight: 4, arbitrary: fc.oneof(text, fc.jsonValue()) },
  { weight: 1, arbitrary: text.map((words) => [{ type: 'text', text: words }, picture]) },
)

const input = fc.oneof(fc.dictionary(fc.string(), fc.jsonValue()), fc.constantFrom('{"command": "ls', 'null', '[]', ''))

const failure: EventDraft = {
  type: 'ErrorEvent',
  source: 'environment',
  error_type: 'network',
  message: 'It broke.',
  retryable: true,
}

/** One answer of the model with its calls; results come in the order of the calls, and anything may come in between. */
const turn = fc.record({
  text,
  inputs: fc.array(input, { maxLength: 4 }),
  outputs: fc.array(output, { minLength: 4, maxLength: 4 }),
  between: fc.array(meanwhile, { minLength: 5, maxLength: 5 }),
})

type Turn = typeof turn extends fc.Arbitrary<infer T> ? T : never

function batchesOf({ text: words, inputs, outputs, between }: Turn, name: string): Batch[] {
  const ids = inputs.map((_, at) => `${name}-${at}`)
  return [
    [answered({ text: words, calls: ids }), ...ids.map((id, at) => toolUse(id, inputs[at]))],
    ...between[0]!,
    ...ids.flatMap((id, at) => [[toolResult(id, outputs[at])], ...between[at + 1]!]),
  ]
}

const end = fc.constantFrom<Batch>(
  [status('idle', 'running')],
  [status('paused', 'running')],
  [failure, status('error', 'running')],
  [status('finished', 'running')],
)

const run = fc.record({ before: meanwhile, turns: fc.array(turn, { maxLength: 3 }), end })

const logs = fc
  .array(run, { minLength: 1, maxLength: 4 })
  .map((runs): Batch[] => [
    [systemInit()],
    [userMessage('begin')],
    ...runs.flatMap(({ before, turns, end: last }, at) => [
      ...before,
      [status('running')],
      ...turns.flatMap((each, step) => batchesOf(each, `call-${at}-${step}`)),
      last,
    ]),
  ])

/** As a server would find it that was killed when so many batches were stored, and started again. */
function recovered(batches: readonly Batch[], count: number): { events: Event[]; cut: Event[] } {
  const cut = batches
    .slice(0, count)
    .flat()
    .map((draft, at) => stored(draft, at + 1))
  const state = cut.reduce((before: State, event) => fold(before, event), EMPTY_STATE)
  const outcome = decide(state, { kind: 'recover', why: 'server_restart', newRunId: 'another', now: 0 }) as EventDraft[]
  return { cut, events: [...cut, ...outcome.map((draft, at) => stored(draft, cut.length + at + 1))] }
}

describe('wherever a log is truncated, after recovery', () => {
  test('each call has exactly one result, next to it, no text is empty, and roles are in order', () => {
    fc.assert(
      fc.property(logs, (batches) => {
        for (let count = 2; count <= batches.length; count++) {
          const { events } = recovered(batches, count)
          expect(findFaults(historyOf(events))).toEqual([])
        }
      }),
      { numRuns: effort(20, 1500) },
    )
  })

  test('no message of the user and no call is missing', () => {
    fc.assert(
      fc.property(logs, (batches) => {
        const { events } = recovered(batches, batches.length)
        const { messages } = historyOf(events)
        const count = (type: Event['type']) => events.filter((event) => event.type === type).length
        const showing = messages.filter(
          (each) => each.role === 'user' && each.content.some((part) => part.type === 'image'),
        )
        const goingOn = messages.filter(isContinue)
        expect(messages.filter(({ role }) => role === 'user')).toHaveLength(
          count('UserMessage') + showing.length + goingOn.length,
        )
        const shown = showing.flatMap((each) =>
          each.role === 'user' ? each.content.filter((part) => part.type === 'image') : [],
        )
        expect(shown).toHaveLength(
          events.filter(
            (event) => event.type === 'ToolResult' && Array.isArray(event.output) && event.output.includes(picture),
          ).length,
        )
        expect(messages.filter(({ role }) => role === 'tool')).toHaveLength(count('ToolUse'))
      }),
    )
  })
})

const isContinue = (message: ModelMessage) =>
  message.role === 'user' && message.content.some((part) => part.type === 'text' && part.text.startsWith('Continue.'))

describe('a request ends with a message to answer', () => {
  const of = (...drafts: EventDraft[]) => historyOf(drafts.map((draft, at) => stored(draft, at + 1)))
  const shape = (history: Pick<History, 'messagesToSend'>) =>
    history.messagesToSend().map((message) => (isContinue(message) ? 'continue' : message.role))

  test('if the agent spoke last, or there are no messages', () => {
    expect(shape(of())).toEqual(['continue'])
    expect(shape(of(userMessage('begin'), answered({ text: 'Done.' })))).toEqual(['user', 'assistant', 'continue'])
    expect(shape(of(userMessage('begin')))).toEqual(['user'])
    const called = [answered({ calls: ['a'] }), toolUse('a'), toolResult('a')]
    expect(shape(of(userMessage('begin'), ...called))).toEqual(['user', 'assistant', 'tool'])
  })

  test('with the same words each time: reading a log again gives the messages that were sent', () => {
    const events = [userMessage('begin'), answered({ text: 'One.' }), answered({ text: 'Two.' })]
    const live = of(...events.slice(0, 2))
    live.messagesToSend()
    live.add(stored(events[2]!, 3))
    expect(live.messages).toEqual(of(...events).messages)
    expect(shape(live)).toEqual(['user', 'assistant', 'continue', 'assistant', 'continue'])
    expect(findFaults({ messages: live.messagesToSend() })).toEqual([])
  })

  test('without a message of white space alone, whatever an older server has stored', () => {
    const blank = ' \n\u00a0'
    const history = of(
      userMessage(blank),
      answered({ text: blank }),
      answered({ text: blank, calls: ['a'] }),
      toolUse('a'),
      toolResult('a', blank),
    )
    expect(findFaults({ messages: history.messagesToSend() })).toEqual([])
    expect(history.messages).toMatchObject([
      { role: 'user', content: [{ type: 'text', text: '[an empty message]' }] },
      { role: 'assistant', toolCalls: [{ id: 'a' }] },
      { role: 'tool', content: '[white space only]' },
    ])
  })
})

test('messages are append-only: the messages of a log’s beginning begin the messages of the whole log', () => {
  fc.assert(
    fc.property(logs, (batches) => {
      const events = batches.flat().map((draft, at) => stored(draft, at + 1))
      const history = new History(render)
      let before: ModelMessage[] = []
      for (const event of events) {
        history.add(event)
        expect(history.messages.slice(0, before.length)).toEqual(before)
        // The very same objects: what was made of them once is found again by identity.
        expect(history.messages.slice(0, before.length).every((kept, at) => kept === before[at])).toBe(true)
        before = [...history.messages]
      }
    }),
  )
})

test('a message that comes while calls are open is read after their results', () => {
  const { messages } = historyOf(
    [
      userMessage('begin'),
      answered({ calls: ['a', 'b'] }),
      toolUse('a'),
      toolUse('b'),
      toolResult('a'),
      userMessage('meanwhile'),
      toolResult('b'),
    ].map((draft, at) => stored(draft, at + 1)),
  )
  expect(messages.map((each) => each.role)).toEqual(['user', 'assistant', 'tool', 'tool', 'user'])
})

test('results are in the order of the calls, whatever order they arrived in', () => {
  const { messages } = historyOf(
    [
      userMessage('begin'),
      answered({ calls: ['a', 'b'] }),
      toolUse('a'),
      toolUse('b'),
      toolResult('b'),
      toolResult('a'),
    ].map((draft, at) => stored(draft, at + 1)),
  )
  expect(messages.flatMap((each) => (each.role === 'tool' ? [each.toolCallId] : []))).toEqual(['a', 'b'])
})

test('arguments that were not a JSON object are shown to the model as it wrote them, inside one', () => {
  const { messages } = historyOf(
    [userMessage('begin'), answered({ calls: ['a'] }), toolUse('a', '{"command": '), toolResult('a')].map((draft, at) =>
      stored(draft, at + 1),
    ),
  )
  expect(messages[1]).toMatchObject({ toolCalls: [{ id: 'a', arguments: '{"invalid_arguments":"{\\"command\\": "}' }] })
})

test('a failed call reads as an error, reported once; empty output is described as empty', () => {
  const failed = { ...toolResult('a', { code: 1 }), is_error: true, error_message: 'It failed.' } as EventDraft
  const reported = {
    ...toolResult('b', 'Sorry: It failed.'),
    is_error: true,
    error_message: 'It failed.',
  } as EventDraft
  const { messages } = historyOf(
    [
      userMessage('begin'),
      answered({ calls: ['a', 'b', 'c'] }),
      toolUse('a'),
      toolUse('b'),
      toolUse('c'),
      failed,
      reported,
      toolResult('c', ''),
    ].map((draft, at) => stored(draft, at + 1)),
  )
  expect(messages.flatMap((each) => (each.role === 'tool' ? [each.content] : []))).toEqual([
    'Error: It failed.\n{"code":1}',
    'Sorry: It failed.',
    '[no output]',
  ])
})

describe('images of tool results', () => {
  const image = (data: string) => ({ type: 'image', media_type: 'image/png', data })
  const batch = [userMessage('begin'), answered({ calls: ['a', 'b', 'c'] }), toolUse('a'), toolUse('b'), toolUse('c')]
  const results = [
    toolResult('b', [{ type: 'text', text: 'two:' }, image('Mg=='), image('Mw==')]),
    toolResult('a', [image('MQ==')]),
    toolResult('c', 'no image'),
  ]

  test('are shown in one message after all results of the turn, in the order of the calls; the results name them', () => {
    const { messages } = historyOf(
      [...batch, ...results, userMessage('meanwhile')].map((draft, at) => stored(draft, at + 1)),
    )
    expect(messages.slice(2)).toEqual([
      { role: 'tool', toolCallId: 'a', content: '[image: image/png]', images: [image('MQ==')] },
      {
        role: 'tool',
        toolCallId: 'b',
        content: 'two:\n[image: image/png]\n[image: image/png]',
        images: [image('Mg=='), image('Mw==')],
      },
      { role: 'tool', toolCallId: 'c', content: 'no image' },
      {
        role: 'user',
        content: [{ type: 'text', text: expect.any(String) }, image('MQ=='), image('Mg=='), image('Mw==')],
        repeatsImages: true,
      },
      { role: 'user', content: [{ type: 'text', text: 'meanwhile' }] },
    ])
    expect(findFaults({ messages })).toEqual([])
  })

  test('a list that only resembles parts is an output like any other', () => {
    const odd = [{ type: 'image', url: 'x' }]
    const { messages } = historyOf(
      [...batch.slice(0, 1), answered({ calls: ['a'] }), toolUse('a'), toolResult('a', odd)].map((draft, at) =>
        stored(draft, at + 1),
      ),
    )
    expect(messages.slice(2)).toEqual([{ role: 'tool', toolCallId: 'a', content: JSON.stringify(odd) }])
  })
})

test('the messages of a subagent are not in the history of its caller', () => {
  const sub = (draft: EventDraft) => ({ ...draft, parent_tool_use_id: 'a' }) as EventDraft
  const events = [
    userMessage('begin'),
    answered({ calls: ['a'] }),
    toolUse('a'),
    sub(answered({ text: 'sub', calls: ['x'] })),
    sub(toolUse('x')),
    sub(toolResult('x')),
    toolResult('a'),
  ]
  expect(historyOf(events.map((draft, at) => stored(draft, at + 1))).messages.map((each) => each.role)).toEqual([
    'user',
    'assistant',
    'tool',
  ])
})

test('an event type of a newer server is skipped', () => {
  const unknown = { ...stored(userMessage('x'), 2), type: 'Telepathy' } as unknown as Event
  expect(historyOf([stored(userMessage('begin'), 1), unknown]).messages).toHaveLength(1)
})

describe('findFaults reports', () => {
  const user: ModelMessage = { role: 'user', content: [{ type: 'text', text: 'hi' }] }
  const calling = (...ids: string[]): ModelMessage => ({
    role: 'assistant',
    text: '',
    toolCalls: ids.map((id) => ({ id, name: 'Bash', arguments: '{}' })),
  })
  const result = (toolCallId: string, content = 'done'): ModelMessage => ({ role: 'tool', toolCallId, content })

  test.each<[string, ModelMessage[], RegExp]>([
    ['a call without a result', [user, calling('a')], /a at the end has no result/],
    ['a result that is late', [user, calling('a'), user, result('a')], /call a before it has no result/],
    ['a result nobody asked for', [user, result('a')], /none was expected/],
    ['two results of one call', [user, calling('a'), result('a'), result('a')], /none was expected/],
    ['results in another order', [user, calling('a', 'b'), result('b'), result('a')], /result of b where a/],
    ['two calls of one id', [user, calling('a', 'a'), result('a'), result('a')], /share an id/],
    ['an empty result', [user, calling('a'), result('a', '')], /empty text/],
    ['an answer that says nothing', [user, { role: 'assistant', text: '', toolCalls: [] }], /neither text nor calls/],
    [
      'an answer behind another',
      [user, { role: 'assistant', text: 'hi', toolCalls: [] }, { role: 'assistant', text: 'hi', toolCalls: [] }],
      /behind an answer/,
    ],
    ['an answer before any question', [{ role: 'assistant', text: 'hi', toolCalls: [] }], /not the user’s/],
    ['a message without content', [{ role: 'user', content: [] }], /no content/],
    ['a message with an empty part', [{ role: 'user', content: [{ type: 'text', text: '' }] }], /empty text/],
  ])('%s', (_, messages, fault) => {
    expect(findFaults({ messages })).toContainEqual(expect.stringMatching(fault))
  })
})
