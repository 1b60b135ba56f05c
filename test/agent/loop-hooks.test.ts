/** Where a hook can end a run, and what the loop has done by then. Nothing here is stored, and no model is asked. */
import { expect, test } from 'vitest'
import { runAgent } from '../../src/agent/loop.ts'
import type { AgentContext, Output } from '../../src/agent/loop-context.ts'
import type { LoopHooks } from '../../src/agent/loop-hooks.ts'
import type { RunLimits } from '../../src/agent/model/loop-ends.ts'
import type { ToolCall } from '../../src/state/tool-call.ts'

type Setting = {
  /** The step at which a hook ends the run. */
  readonly endsAt?: string
  readonly asks?: boolean
  readonly withoutHooks?: boolean
  readonly decisions?: object
  readonly waitsOutside?: boolean
  readonly isLeaving?: boolean
  /** Names of the open calls: those that begin with `read` only read, and `Task` calls a subagent. */
  readonly names?: readonly string[]
  readonly begun?: readonly number[]
}

/** Runs the loop until its first model request, which is beyond its limit. Returns why it stopped, and its steps. */
async function run(setting: Setting) {
  const { endsAt, asks = false, names = ['Bash'], begun = [] } = setting
  const steps: string[] = []
  const step = (name: string): boolean => {
    steps.push(name)
    return name === endsAt
  }
  let open = names.map((name, at): ToolCall => ({ toolUseId: `${at}`, name, input: {}, runId: 'r' }))
  const hooks = {
    begin: async () => step('begin'),
    beforeCalls: async () => step('before calls'),
    areCurrent: () => true,
    afterCalls: async () => step('after calls'),
    takeEnd: () => step('after each call'),
    approve: async () => (step('approve') ? 'end' : setting.decisions),
  } as unknown as LoopHooks
  const limits: RunLimits = {
    maxSteps: 1,
    maxIterations: 9,
    maxTokens: undefined,
    maxBudgetUsd: undefined,
    allowsUnpriced: false,
  }
  const permissionCalls = asks ? [{ tool_use_id: '0' }] : []
  const context = {
    runId: 'r',
    toolCalls: {
      hasBegun: (id: string) => begun.includes(Number(id)),
      isReadOnly: (name: string) => name.startsWith('read'),
      callsSubagent: (name: string) => name === 'Task',
      questionsIn: () => [],
      runInParallel: async (calls: readonly ToolCall[]) => {
        step(`run ${calls.map(({ toolUseId }) => toolUseId).join(',')}`)
        open = open.filter((call) => !calls.includes(call))
        return { finishes: false }
      },
    },
    openCalls: () => open,
    decideCalls: async () => {},
    gate: () => ({ permissionCalls, denials: new Map() }),
    leftAnswer: () => undefined,
    waitsOutside: () => setting.waitsOutside ?? false,
    hooks: () => (setting.withoutHooks ? undefined : hooks),
    leaving: setting.isLeaving ? AbortSignal.abort() : undefined,
    steps: () => 1,
    stuckIn: () => undefined,
    isNearlyStuck: () => false,
    limits: () => limits,
    spent: () => ({ tokens: 0, costUsd: 0 }),
  } as unknown as AgentContext
  const end = await runAgent(context, {} as Output, new AbortController().signal)
  return { end, steps }
}

test.each<[string, Setting, object | undefined, readonly string[]]>([
  ['nowhere', {}, { stopReason: 'max_steps' }, ['begin', 'before calls', 'run 0', 'after each call', 'after calls']],
  ['where there is none', { withoutHooks: true }, { stopReason: 'max_steps' }, ['run 0']],
  ['when it begins', { endsAt: 'begin' }, { stopReason: 'hook' }, ['begin']],
  ['before a call', { endsAt: 'before calls' }, { stopReason: 'hook' }, ['begin', 'before calls']],
  [
    'after a call',
    { endsAt: 'after each call' },
    { stopReason: 'hook' },
    ['begin', 'before calls', 'run 0', 'after each call'],
  ],
  [
    'after all calls',
    { endsAt: 'after calls' },
    { stopReason: 'hook' },
    ['begin', 'before calls', 'run 0', 'after each call', 'after calls'],
  ],
  [
    'when a call needs a decision',
    { asks: true, endsAt: 'approve' },
    { stopReason: 'hook' },
    ['begin', 'before calls', 'approve'],
  ],
  [
    'nowhere while a call waits for a user',
    { asks: true },
    { permissionCalls: [{ tool_use_id: '0' }] },
    ['begin', 'before calls', 'approve'],
  ],
  [
    'nowhere when it decides a call',
    { asks: true, decisions: { made: [] } },
    { permissionCalls: [{ tool_use_id: '0' }], hooked: { made: [] } },
    ['begin', 'before calls', 'approve'],
  ],
  [
    'nowhere while a client executes a call',
    { waitsOutside: true },
    { waitsOutside: true },
    ['begin', 'before calls', 'run 0', 'after each call'],
  ],
  ['nowhere when another process continues before a call', { isLeaving: true }, undefined, ['begin', 'before calls']],
])('a hook ends a run %s', async (_what, setting, end, steps) => {
  expect(await run(setting)).toEqual({ end: end && expect.objectContaining(end), steps })
})

test.each<[string, readonly string[], readonly number[], readonly string[]]>([
  ['one after the other', ['Bash', 'Bash'], [], ['0', '1']],
  ['together, if they only read', ['read', 'read', 'Bash', 'read'], [], ['0,1', '2', '3']],
  ['at most eight together', Array.from({ length: 9 }, () => 'read'), [], ['0,1,2,3,4,5,6,7', '8']],
  ['together, if they call subagents', ['Task', 'Task', 'read', 'Task'], [], ['0,1', '2', '3']],
  ['first those that have begun', ['Bash', 'read', 'Bash'], [1, 2], ['1,2', '0']],
])('the calls of a turn run %s', async (_what, names, begun, expected) => {
  const { steps } = await run({ withoutHooks: true, names, begun })
  expect(steps).toEqual(expected.map((ids) => `run ${ids}`))
})
