/** A run that is cut off after its last answer ends with it: the model is not asked to continue what it has ended. */
import { describe, expect, test } from 'vitest'
import type { EventDraft } from '../../src/contract/events/event.ts'
import { openAnswer } from '../../src/state/answered.ts'
import type { Intent } from '../../src/state/intents.ts'
import { decide } from '../../src/state/intents.ts'
import { EMPTY_STATE } from '../../src/state/state.ts'
import {
  answered,
  conversationId,
  folded,
  runId,
  settings,
  START_MS,
  status,
  toolResult,
  toolUse,
  userMessage,
} from '../conversations/events.ts'

const now = START_MS + 60_000
const recover: Intent = { kind: 'recover', why: 'server_restart', newRunId: runId, now }
const failed: Intent = { ...recover, why: 'log_failed' }
const pause: Intent = { kind: 'pause', reason: 'server_closing', interrupt: true, begun: [], now }
const BEGUN = [userMessage('go', true), status('running')]
const FINISHED = [
  answered({ calls: ['a'] }),
  { ...toolUse('a'), name: 'Finish' },
  { ...toolResult('a'), output: 'All done.' },
]

const ends = (state: ReturnType<typeof folded>, intent: Intent) =>
  (decide(state, intent) as EventDraft[]).flatMap((draft) =>
    draft.type === 'Result'
      ? [draft.stop_reason, draft.final_text]
      : draft.type === 'StatusUpdate'
        ? [draft.status]
        : [],
  )

test('lists show what a run of the main agent ended with, and not what a subagent did', () => {
  const end = {
    type: 'Result',
    source: 'environment',
    session_id: conversationId,
    steps: 1,
    duration_ms: 1,
    usage: {},
  } as const
  const result = (final_text: string, more: object = {}): EventDraft => ({
    ...end,
    run_id: runId,
    stop_reason: 'completed',
    final_text,
    ...more,
  })
  const events = [...BEGUN, result('Done.'), result('Found it.', { parent_tool_use_id: 'task' })]
  expect(folded(events).lastWords).toBe('Done.')
})

describe.each([
  ['a restart', recover],
  ['a failed disk', failed],
  ['a stop', pause],
])('after %s', (_, intent) => {
  test('the run ends as it would have', () => {
    expect(ends(folded([...BEGUN, answered({ text: 'one' })]), intent)).toEqual(['completed', 'one', 'idle'])
    expect(ends(folded([...BEGUN, ...FINISHED]), intent)).toEqual(['finished', 'All done.', 'finished'])
  })
})

test.each<[string, readonly EventDraft[]]>([
  ['an answer that was cut off', [{ ...answered({ text: 'one' }), stop_reason: 'length' }]],
  ['an answer that failed', [{ ...answered({ text: 'one' }), partial: true }]],
  ['an answer that the provider continues', [{ ...answered({ text: 'one' }), stop_reason: 'pause_turn' }]],
  ['a message that came after it', [answered({ text: 'one' }), userMessage('and this', true)]],
  [
    'a message that it had not read',
    [userMessage('and this', true), { ...answered({ text: 'one' }), read_through: 2 }],
  ],
])('%s does not end it', (_, events) => {
  expect(ends(folded([...BEGUN, ...events]), recover)).toEqual(['server_restart', expect.anything(), 'paused'])
})

test('hooks and a schema have a say: the next run asks them, and not the model', () => {
  const cut = [...BEGUN, answered({ text: 'one' })]
  const hooked = folded(cut, { ...EMPTY_STATE, id: conversationId, settings: { ...settings, hooks: {} } })
  const withSchema = folded(cut, { ...EMPTY_STATE, id: conversationId, settings: { ...settings, output_schema: {} } })
  for (const state of [hooked, withSchema]) {
    const drafts = decide(state, recover) as EventDraft[]
    expect(ends(state, recover)).toEqual(['server_restart', 'one', 'paused'])
    const again = folded([...drafts, status('running', 'paused')], state)
    expect(openAnswer(again)).toEqual({ stopReason: 'completed', text: 'one' })
    expect(openAnswer(folded([userMessage('go on', true)], again))).toBeUndefined()
  }
  expect(ends(folded(cut), { ...pause, hasHooks: true })).toEqual(['paused', 'one', 'paused'])
})
