import { describe, expect, test } from 'vitest'
import type { Event, EventDraft } from '../../src/contract/events/event.ts'
import type { Status, StopReason } from '../../src/contract/events/status.ts'
import { EVENT_VERSION } from '../../src/contract/events/event.ts'
import { Status as StatusSchema, StopReason as StopReasonSchema } from '../../src/contract/events/status.ts'
import { UsageByModel } from '../../src/contract/values/message.ts'
import type { State } from '../../src/state/state.ts'
import { STATUS_AFTER } from '../../src/state/run-state.ts'
import { EMPTY_STATE, fold, gatedCalls } from '../../src/state/state.ts'
import {
  answered,
  asked,
  conversationId,
  decided,
  folded,
  runId,
  settings,
  status,
  stored,
  toolResult,
  toolUse,
  userMessage,
} from '../conversations/events.ts'

const STATUSES = StatusSchema.options

test.each(STATUSES)('a StatusUpdate to %s makes that the status', (to) => {
  expect(folded([status(to)])).toMatchObject({ status: to, reason: 'a test' })
})

test.each([
  ['UserMessage', userMessage('hello', true)],
  ['AssistantMessage', answered({ text: 'hello' })],
  ['ToolUse', toolUse('call-1')],
  ['ToolResult', toolResult('call-1')],
  ['ConfigUpdate', { type: 'ConfigUpdate', source: 'user', changes: { title: 'new' } }],
  ['ErrorEvent', { type: 'ErrorEvent', source: 'environment', error_type: 'network', message: 'no', retryable: true }],
] as const satisfies [string, EventDraft][])('%s does not change the status, whatever it is', (_, draft) => {
  for (const now of STATUSES) expect(folded([status(now), draft]).status).toBe(now)
})

test('every event moves the cursor and the time of the last change; the first one is the creation', () => {
  const state = folded([userMessage('one'), userMessage('two'), userMessage('three')])
  expect(state).toMatchObject({
    id: conversationId,
    lastSeq: 3,
    createdAt: stored(userMessage('one'), 1).timestamp,
    updatedAt: stored(userMessage('three'), 3).timestamp,
  })
})

describe('the run', () => {
  test('begins with its first `running`, counts answers, tokens by model and cost, and keeps the last text', () => {
    const usage = { input_tokens: 10, output_tokens: 5, cached_tokens: 4, reasoning_tokens: 1 }
    const state = folded([
      status('running'),
      answered({ text: 'one', usage, model: 'a', cost_usd: 0.5 }),
      answered({ text: 'two', usage, model: 'b', cost_usd: 0.25 }),
      answered({ text: 'three', usage, model: 'a' }),
    ])
    const twice = { input_tokens: 20, output_tokens: 10, cached_tokens: 8, reasoning_tokens: 2 }
    expect(state.run).toMatchObject({
      id: runId,
      steps: 3,
      usage: { a: twice, b: usage },
      costUsd: 0.75,
      finalText: 'three',
    })
    expect(state).toMatchObject({ usage: { a: twice, b: usage }, costUsd: 0.75 })
  })

  test('has usage and cost that JSON can express, whatever numbers an older log has', () => {
    const usage = { input_tokens: 1e308, output_tokens: 1e308, cached_tokens: -1, reasoning_tokens: 0 }
    const huge = answered({ text: 'huge', usage, model: 'a', cost_usd: 1e308 })
    const state = folded([status('running'), huge, huge])
    for (const counted of [state, state.run!]) {
      expect(UsageByModel.safeParse(counted.usage).error).toBeUndefined()
      expect(counted.costUsd).toSatisfy(Number.isFinite)
    }
  })

  test.each(STATUSES)('%s: it is kept while it runs or waits, and over otherwise', (to) => {
    const { run } = folded([status('running'), answered({ text: 'one' }), status(to)])
    const continues = to === 'running' || to.startsWith('waiting_')
    expect(run?.steps).toBe(continues ? 1 : undefined)
  })

  test('a second run counts from zero, the conversation keeps counting', () => {
    const usage = { input_tokens: 1, output_tokens: 1, cached_tokens: 0, reasoning_tokens: 0 }
    const state = folded([
      status('running'),
      answered({ text: 'one', usage, model: 'a' }),
      status('idle'),
      { ...status('running'), run_id: '018f0000-0000-7000-8000-00000000000b' },
      answered({ text: 'two', usage, model: 'a' }),
    ])
    expect(state.run).toMatchObject({ steps: 1, usage: { a: usage } })
    expect(state.usage).toEqual({ a: { input_tokens: 2, output_tokens: 2, cached_tokens: 0, reasoning_tokens: 0 } })
  })

  test('a subagent’s answer costs, but does not count as a step or as the final text of the run', () => {
    const state = folded([
      status('running'),
      { ...answered({ text: 'sub', cost_usd: 1 }), parent_tool_use_id: 'call-1' },
    ])
    expect(state.run).toMatchObject({ steps: 0, finalText: '' })
    expect(state.costUsd).toBe(1)
  })
})

test('calls are open, in their order, until each has its result', () => {
  const calls = [answered({ calls: ['a', 'b', 'c'] }), toolUse('a'), toolUse('b'), toolUse('c')]
  expect(folded(calls).openCalls.map((call) => call.toolUseId)).toEqual(['a', 'b', 'c'])
  expect(folded([...calls, toolResult('b')]).openCalls.map((call) => call.toolUseId)).toEqual(['a', 'c'])
  expect(folded([...calls, toolResult('b'), toolResult('a'), toolResult('c')]).openCalls).toEqual([])
})

describe('a request for permission', () => {
  const turn = [status('running'), answered({ calls: ['a', 'b'] }), toolUse('a'), toolUse('b')]
  const waiting = folded([...turn, asked(['a', 'b']), status('waiting_for_confirmation', 'running')])
  const approvals = (state: State) => gatedCalls(state).map((call) => call.approved)

  test('approves nothing by itself; an `allow` approves its one call', () => {
    expect(approvals(waiting)).toEqual([false, false])
    expect(approvals(folded([decided('b')], waiting))).toEqual([false, true])
    expect(approvals(folded([decided('a', { behavior: 'deny' })], waiting))).toEqual([false, false])
  })

  test.each([
    ['another request', { request_id: runId }],
    ['other content', { input_hash: '0'.repeat(64) }],
    ['no call of the turn', { tool_use_id: 'c' }],
  ])('a decision about %s decides nothing', (_, wrong) => {
    const after = folded([decided('a', { updated_input: { command: 'false' }, ...wrong })], waiting)
    expect({ ...after, lastSeq: 0, updatedAt: '' }).toEqual({ ...waiting, lastSeq: 0, updatedAt: '' })
  })

  test('an approval applies to the call as shown: a call with other content is not approved', () => {
    const shownOther = folded([...turn, asked(['a', 'b'], { command: 'ls' }), status('waiting_for_confirmation')])
    const { input_hash } = asked(['a'], { command: 'ls' }).payload.tool_uses[0]!
    expect(approvals(folded([decided('a', { input_hash })], shownOther))).toEqual([false, false])
  })

  test('an updated input replaces that of the call, and is what is approved', () => {
    const after = folded([decided('a', { updated_input: { command: 'false' } }), decided('b')], waiting)
    expect(after.openCalls).toMatchObject([
      { input: { command: 'false' }, isChanged: true },
      { input: { command: 'true' } },
    ])
    expect(approvals(after)).toEqual([true, true])
  })

  test('ends with the results of its turn: the same ids in a later turn are not approved', () => {
    const after = folded([decided('a'), decided('b'), toolResult('a')], waiting)
    expect(approvals(after)).toEqual([true])
    expect(approvals(folded([toolResult('b'), ...turn.slice(1)], after))).toEqual([false, false])
  })
})

test('a run’s time does not count while it waits, and its steps are not reset', () => {
  const begin = { ...status('running'), max_steps: 3 }
  const state = folded([begin, answered({}), status('waiting_for_confirmation', 'running'), userMessage('x')])
  const later = folded([status('running', 'waiting_for_confirmation'), answered({})], state)
  expect(later.run).toMatchObject({ steps: 2, maxSteps: 3, activeMs: 2000 })
  expect(folded([status('waiting_for_confirmation', 'running')], later).run).toMatchObject({ activeMs: 4000 })
})

describe('the last output of a tool that is kept in the log', () => {
  const plan = (id: string, output: unknown, more: object = {}) => [
    answered({ calls: [id] }),
    toolUse(id, {}, 'TaskTracker'),
    { ...toolResult(id, output), ...more } as EventDraft,
  ]

  test('is that of its newest successful call', () => {
    expect(folded(plan('a', 1)).lastOutputs).toEqual({ TaskTracker: 1 })
    expect(folded([...plan('a', 1), ...plan('b', 2)]).lastOutputs).toEqual({ TaskTracker: 2 })
    expect(folded([...plan('a', 1), ...plan('b', 'no', { is_error: true })]).lastOutputs).toEqual({ TaskTracker: 1 })
  })

  test('is not that of a subagent, nor of any other tool', () => {
    const sub = plan('a', 1).map((draft) => ({ ...draft, parent_tool_use_id: 'x' }) as EventDraft)
    expect(folded(sub).lastOutputs).toEqual({})
    expect(folded([answered({ calls: ['a'] }), toolUse('a'), toolResult('a')]).lastOutputs).toEqual({})
  })
})

test('only a message with `run: true` counts as a request for a run', () => {
  expect(folded([userMessage('one', true), userMessage('two')]).runRequestedAt).toBe(1)
  expect(folded([userMessage('one'), userMessage('two', true)]).runRequestedAt).toBe(2)
})

test('the preview is the beginning of the first message, in whole characters, and never changes', () => {
  expect(folded([userMessage('first'), userMessage('second')]).preview).toBe('first')
  const { preview } = folded([userMessage('😀'.repeat(300))])
  expect(preview).toHaveLength(200)
  const { preview: cutInside } = folded([userMessage(`x${'😀'.repeat(300)}`)])
  expect(cutInside.isWellFormed()).toBe(true)
})

describe('configuration', () => {
  test('SystemInit sets the settings; a ConfigUpdate changes the named fields, llm_config field by field', () => {
    const before = folded([]).settings
    const state = folded([
      { type: 'ConfigUpdate', source: 'user', changes: { title: 'new', llm_config: { temperature: 1 } } },
    ])
    expect(state.settings).toEqual({ ...before, title: 'new', llm_config: { ...settings.llm_config, temperature: 1 } })
  })

  test('settings of a newer version are ignored, and the log can still be read', () => {
    const newer = {
      ...stored({ type: 'ConfigUpdate', source: 'user', changes: { llm_config: { telepathy: true } } }, 2),
      version: EVENT_VERSION + 1,
    }
    expect(fold(folded([]), newer)).toMatchObject({ lastSeq: 2, version: EVENT_VERSION + 1, settings })
  })

  test('invalid settings of our version are damage', () => {
    const senseless = stored({ type: 'ConfigUpdate', source: 'user', changes: { tools: 'all' } }, 2)
    expect(() => fold(folded([]), senseless)).toThrow(expect.objectContaining({ code: 'conversation_damaged' }))
  })
})

test('an unknown type moves the cursor, and is remembered as from a newer server, as a newer version is', () => {
  const before = folded([status('running'), answered({ calls: ['a'] }), toolUse('a')])
  const unknown = { ...stored(userMessage(''), 99), type: 'Telepathy', thought: 'hm' } as unknown as Event
  const { timestamp: updatedAt } = unknown
  expect(fold(before, unknown)).toEqual({ ...before, lastSeq: 99, updatedAt, version: EVENT_VERSION + 1 })
  const known = { ...stored(status('running'), 99), version: EVENT_VERSION + 2 }
  expect(fold(before, known).version).toBe(EVENT_VERSION + 2)
})

test('the fold changes no state it was given', () => {
  const frozen = Object.freeze({ ...EMPTY_STATE, openCalls: Object.freeze([]), usage: Object.freeze({}) })
  for (const [at, draft] of [
    status('running'),
    answered({ calls: ['a'] }),
    toolUse('a'),
    toolResult('a'),
    userMessage('x', true),
  ].entries()) {
    expect(() => fold(frozen, stored(draft, at + 1))).not.toThrow()
  }
})

test.each(StopReasonSchema.options)(
  'a run that stopped because of %s leads to a defined status',
  (reason: StopReason) => {
    const expected: Record<StopReason, Status> = {
      completed: 'idle',
      finished: 'finished',
      paused: 'paused',
      max_steps: 'paused',
      server_restart: 'paused',
      owner_lost: 'paused',
      iteration_limit: 'error',
      stuck: 'error',
      content_filter: 'error',
      hook: 'idle',
      time_limit: 'error',
      budget_limit: 'error',
      token_limit: 'error',
      error: 'error',
      rejected: 'idle',
      superseded: 'idle',
      cancelled: 'cancelled',
    }
    expect(STATUS_AFTER[reason]).toBe(expected[reason])
  },
)

test('what a subagent spends counts for the run that started it, by model', () => {
  const usage = { input_tokens: 10, output_tokens: 5, cached_tokens: 0, reasoning_tokens: 0 }
  const spent = { ...answered({ text: 'sub', cost_usd: 1, usage, model: 'a' }), parent_tool_use_id: 'call-1' }
  const { run } = folded([status('running'), spent, spent])
  expect(run?.costUsd).toBe(2)
  expect(run?.usage).toEqual({ a: { ...usage, input_tokens: 20, output_tokens: 10 } })
})
