/** What the model reads of each event, and what it does not read. */
import { expect, test } from 'vitest'
import type { EventDraft } from '../../src/contract/events/event.ts'
import { History } from '../../src/agent/history/history.ts'
import type { ModelMessage } from '../../src/llm/llm.ts'
import { conversationId, requestId, runId, stored, systemInit, userMessage } from '../conversations/events.ts'

const AGENT_ID = '018f0000-0000-7000-8000-0000000000aa'
const ours = { source: 'environment' } as const
const theirs = { source: 'user' } as const

const forked = (cwd: string): EventDraft => ({
  ...ours,
  type: 'ForkedFrom',
  from_conversation_id: conversationId,
  from_seq: 1,
  from_cwd: '/work',
  cwd,
  options_summary: {},
})
const changed = (changes: Record<string, unknown>): EventDraft => ({ ...theirs, type: 'ConfigUpdate', changes })
const rewound = (processes_left: number): EventDraft => ({
  ...theirs,
  type: 'Rewound',
  to_seq: 2,
  closed: { requests: [], tasks: [], subagents: [] },
  processes_left,
  restored: {},
})
const ended = (sessions: string[], command_lines: string[]): EventDraft => ({
  ...ours,
  type: 'ProcessesEnded',
  reason: 'interrupted',
  sessions,
  processes: command_lines.length,
  command_lines,
})
const hooked = (more: { context?: string; tool_use_id?: string; parent_tool_use_id?: string }): EventDraft => ({
  ...ours,
  type: 'HookEvent',
  hook_point: 'PreModelCall',
  name: 'a hook',
  matched: true,
  duration_ms: 1,
  action: 'continue',
  ...more,
})
const restored: EventDraft = {
  ...theirs,
  type: 'FilesRestored',
  to_seq: 2,
  snapshot_id: requestId,
  changed: 1,
  removed: 0,
  failed: 0,
}
const requested = (more: { output_schema?: Record<string, unknown>; fault?: string }): EventDraft => ({
  ...ours,
  type: 'OutputRequest',
  run_id: runId,
  ...more,
})

const began: EventDraft = {
  ...ours,
  type: 'SubagentStart',
  run_id: runId,
  parent_tool_use_id: 'task',
  agent_name: 'helper',
  agent_id: AGENT_ID,
  description: 'Look',
  prompt: 'Look for it.',
  system_prompt: 'You help.',
  tools: [],
  background: true,
}
const subagentEnded = (more: {
  background_agent_id?: string
  interrupted?: true
  final_text?: string
}): EventDraft => ({
  ...ours,
  type: 'Result',
  parent_tool_use_id: 'task',
  agent_name: 'helper',
  final_text: 'Found it.',
  usage: {},
  stop_reason: 'completed',
  steps: 1,
  duration_ms: 1,
  session_id: conversationId,
  ...more,
})

/** The texts that the main agent reads after the message of the user. */
function textsAfter(event: EventDraft): string[] {
  const history = historyOf(event)
  expect(history.system).toBe('Be brief.')
  return textsOf(history.messages.slice(1))
}

function historyOf(event: EventDraft): History {
  const history = new History(() => '')
  for (const [at, draft] of [systemInit(), userMessage('work'), event].entries()) history.add(stored(draft, at + 1))
  return history
}

function textsOf(messages: readonly ModelMessage[]): string[] {
  return messages.map((message) => {
    if (message.role !== 'user') throw new Error(`It is a message of the ${message.role}`)
    return message.content.map((part) => (part.type === 'text' ? part.text : part.type)).join(' | ')
  })
}

test.each<[string, EventDraft, RegExp]>([
  ['another message', userMessage('more'), /^more$/],
  ['a fork that moved', forked('/copy'), /now \/copy, a copy of \/work: .* leave \/work alone/],
  ['other directories', changed({ additional_directories: ['/a', '/b'] }), /change files in \/a, \/b from here on/],
  ['no other directories', changed({ additional_directories: [] }), /no other than your working directory/],
  ['a rewind', rewound(0), /taken the conversation back.* directories\.\]$/],
  ['a rewind that left processes', rewound(2), /directories\. 2 processes .* still run, with their shells\.\]$/],
  ['files that were restored', restored, /restored the files/],
  ['an instance that has gone', ended([], []), /continues on another one\. Start again what you still need\.\]$/],
  ['shells that have ended', ended(['main', 'other'], []), /Your shells have ended: main, other\. Start again/],
  ['processes that have ended', ended([], ['sleep 1', 'top']), /interrupted \(2\):\n- sleep 1\n- top\nStart again/],
  ['a hook that has something to say', hooked({ context: 'Mind the gap.' }), /^Mind the gap\.$/],
  ['a wish for an output', requested({ output_schema: { type: 'object' } }), /JSON Schema is:\n\{"type":"object"\}\]$/],
  [
    'an output that is not valid',
    requested({ fault: 'no JSON' }),
    /^\[Your answer is not valid: no JSON\. Answer again/,
  ],
  [
    'a subagent in the background that ended',
    subagentEnded({ background_agent_id: AGENT_ID }),
    /helper .*: completed\. /,
  ],
  [
    'a subagent that the user stopped',
    subagentEnded({ background_agent_id: AGENT_ID, interrupted: true, final_text: '' }),
    /the user stopped it\. [^]*It ended without a message\.[^]*\[agent_id: 018f0000-0000-7000-8000-0000000000aa\]$/,
  ],
])('the model reads of %s', (_what, event, text) => {
  expect(textsAfter(event)).toEqual([expect.stringMatching(text)])
})

test.each<[string, EventDraft]>([
  ['a fork in the same place', forked('/work')],
  ['a change of other settings', changed({ title: 'new' })],
  ['a hook that has nothing to say', hooked({})],
  ['a hook of a call, whose result says it', hooked({ context: 'Mind the gap.', tool_use_id: 'a' })],
  ['a hook of a subagent', hooked({ context: 'Mind the gap.', parent_tool_use_id: 'task' })],
  ['a subagent that begins', began],
  ['a subagent whose call has its message', subagentEnded({})],
])('the model reads nothing of %s', (_what, event) => {
  expect(textsAfter(event)).toEqual([])
})

test('a subagent reads its own task, and what ends for all from then on', () => {
  const history = new History(() => '', { agentId: AGENT_ID })
  const more: EventDraft[] = [ended(['early'], []), began, forked('/copy'), ended(['late'], [])]
  const notOwn: EventDraft[] = [
    userMessage('more'),
    hooked({ context: 'no' }),
    subagentEnded({ background_agent_id: AGENT_ID }),
  ]
  const own = hooked({ context: 'Mind the gap.', parent_tool_use_id: 'task' })
  const drafts = [systemInit(), userMessage('work'), ...more, ...notOwn, own]
  for (const [at, draft] of drafts.entries()) history.add(stored(draft, at + 1))
  expect(history.system).toBe('You help.')
  expect(textsOf(history.messages)).toEqual(['Look for it.', expect.stringContaining('late'), 'Mind the gap.'])
})

test.each<[EventDraft, object]>([
  [userMessage('more'), { kind: 'user' }],
  [forked('/copy'), { kind: 'move' }],
  [changed({ additional_directories: [] }), { kind: 'move' }],
  [rewound(0), { kind: 'move' }],
  [restored, { kind: 'move' }],
  [ended([], []), { kind: 'other' }],
  [hooked({ context: 'Mind the gap.' }), { kind: 'other' }],
  [requested({ output_schema: {} }), { kind: 'schema', runId }],
  [requested({ fault: 'no JSON' }), { kind: 'other', runId }],
  [subagentEnded({ background_agent_id: AGENT_ID }), { kind: 'other' }],
])('a message has the place and the kind of its event: %j', (event, expected) => {
  const { entries } = historyOf(event)
  const { message: _, ...place } = entries.at(-1)!
  expect(place).toEqual({ seq: 3, ...expected })
})
