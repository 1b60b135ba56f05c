import { expect, test } from 'vitest'
import type { EventDraft } from '../../src/contract/events/event.ts'
import { openRequest } from '../../src/state/approval-intents.ts'
import { asked, folded, runId, status, toolUse } from '../conversations/events.ts'

const change: EventDraft = { type: 'ConfigUpdate', source: 'user', changes: { hooks: {} } }
const verdict = (hooks_seq?: number): EventDraft => ({
  type: 'HookEvent',
  source: 'environment',
  hook_point: 'PreToolUse',
  name: 'a hook',
  matched: true,
  duration_ms: 1,
  action: 'continue',
  tool_use_id: 'call-1',
  decision: 'allow',
  updated_input: { command: 'rm -rf .' },
  ...(hooks_seq !== undefined && { hooks_seq }),
})

test('a verdict of hooks that were replaced just before it was stored does not count', () => {
  const [old] = folded([status('running'), toolUse('call-1'), change, verdict()]).openCalls
  expect(old).not.toHaveProperty('hook')
  expect(old).not.toHaveProperty('isChanged')
  const [current] = folded([status('running'), toolUse('call-1'), change, verdict(3)]).openCalls
  expect(current).toMatchObject({ hook: { decision: 'allow' }, input: { command: 'rm -rf .' }, changedBy: 'hook' })
})

test('decisions of hooks that were replaced meanwhile are not stored', () => {
  const request = asked(['call-1'])
  const decision = { toolUseId: 'call-1', behavior: 'allow', decidedBy: 'hook' } as const
  const ask = (hooksAt: number) =>
    openRequest(folded([status('running'), toolUse('call-1'), change]), {
      kind: 'request_permission',
      runId,
      requestId: 'one',
      toolUses: request.payload.tool_uses,
      hooked: { hooksAt, decisions: [decision] },
    }).map(({ type }) => type)
  expect(ask(0)).toEqual([])
  expect(ask(3)).toEqual(['RequestOpened', 'RequestAnswered'])
})
