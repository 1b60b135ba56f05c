/** What a conversation has after it went back, and what it keeps. */
import { expect, test } from 'vitest'
import type { EventDraft } from '../../src/contract/events/event.ts'
import { NO_REPEATS } from '../../src/state/repeats/repeats.ts'
import { rewoundAt } from '../../src/state/rewind.ts'
import type { State } from '../../src/state/state.ts'
import { EMPTY_STATE, fold } from '../../src/state/state.ts'
import { agent } from './agent.ts'
import { asked, folded, questioned, runId, status, stored, toolUse, userMessage } from '../conversations/events.ts'

const rewound = (to_seq: number, more: object = {}): EventDraft => ({
  type: 'Rewound',
  source: 'user',
  to_seq,
  closed: { requests: [], tasks: [], subagents: [] },
  processes_left: 0,
  restored: {},
  ...more,
})
const after = (state: State, draft: EventDraft): State => fold(state, stored(draft, state.lastSeq + 1))

/** It works, waits for everything, and remembers a lot. */
function busy(): State {
  const state = folded([userMessage('go', true), status('running'), toolUse('a'), asked(['a']), questioned('b')])
  const host = { kind: 'network', request_id: 'host', tool_use_ids: [], opened_at: '', payload: { host: 'h', port: 1 } }
  return {
    ...state,
    subagents: [agent('x')],
    requests: [...state.requests, host as never],
    holdsCalls: true,
    lastOutputs: { TaskTracker: ['now'] },
    granted: { allow: ['Bash'], ask: [], deny: [] },
    subagentEndedAt: 3,
    repeats: { ...NO_REPEATS, texts: 2 },
    answered: { stopReason: 'completed', text: 'Done.' },
    forgotten: { seq: 2, throughSeq: 1 },
    contextTokens: 10,
    lastRun: { id: runId, startSeq: 2, overrides: { model: 'small' } },
    runsInARow: 4,
    lastWords: 'Done.',
    preview: 'go',
    previewSeq: 1,
  }
}

test('nothing runs or waits after it, except for what waits for a host', () => {
  const state = after(busy(), rewound(1))
  expect(state.requests.map(({ kind }) => kind)).toEqual(['network'])
  const nothing = { run: undefined, openCalls: [], subagents: [], request: undefined, holdsCalls: false }
  const forgotten = { granted: undefined, answered: undefined, forgotten: undefined, contextTokens: undefined }
  const begun = { runRequestedAt: 0, subagentEndedAt: 0, repeats: NO_REPEATS, runsInARow: 0, lastOutputs: {} }
  expect(state).toMatchObject({ ...nothing, ...forgotten, ...begun, readThrough: state.lastSeq })
  expect(state.lastRun).toEqual({ id: runId, startSeq: 2 })
  expect([rewoundAt(state.rewound), rewoundAt([])]).toEqual([state.lastSeq, 0])
})

test('the agent has what it had at that event', () => {
  const restored = { forgotten: { seq: 4, through_seq: 3 }, last_outputs: { TaskTracker: ['then'] }, context_tokens: 7 }
  expect(after(busy(), rewound(1, { restored }))).toMatchObject({
    forgotten: { seq: 4, throughSeq: 3 },
    lastOutputs: { TaskTracker: ['then'] },
    contextTokens: 7,
  })
})

test.each([
  [0, { preview: '', previewSeq: 0, lastWords: '' }],
  [1, { preview: 'go', previewSeq: 1, lastWords: '' }],
  [2, { preview: 'go', previewSeq: 1, lastWords: 'Done.' }],
])('back at event %i, the list of conversations shows %j', (to_seq, shown) => {
  expect(after(busy(), rewound(to_seq))).toMatchObject(shown)
})

test('without a run there are no words of one, and the key of the request is known', () => {
  const state = after({ ...busy(), lastRun: undefined }, rewound(0, { idempotency_key: 'k', body_hash: 'h' }))
  expect([state.lastRun, state.lastWords]).toEqual([undefined, 'Done.'])
  expect(state.postedKeys).toMatchObject([{ key: 'k', bodyHash: 'h' }])
  expect(after(EMPTY_STATE, rewound(0)).postedKeys).toEqual([])
})
