/**
 * What the agent says to models and users, as it was reviewed: each text, and when it is said. Write the files again with
 * `vitest run -u test/agent/reviewed`, and review each line that differs.
 */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { accessOf, readInput } from '../../../src/agent/tool-input.ts'
import { boundMessage } from '../../../src/agent/history/subagent-message.ts'
import { findFaults } from '../../../src/agent/find-faults.ts'
import { CUT_OFF, metLimit, timeLimit } from '../../../src/agent/model/loop-ends.ts'
import type { LimitReadings, RunLimits } from '../../../src/agent/model/loop-ends.ts'
import { buildSystemPrompt } from '../../../src/agent/prompt.ts'
import { redactOutput } from '../../../src/agent/redact-output.ts'
import { hasFailed } from '../../../src/state/repeats/repeats.ts'
import type { Habit } from '../../../src/agent/repeats/habits.ts'
import { toModelCall, toToolMessage } from '../../../src/agent/history/tool-messages.ts'
import type { ResultDraft } from '../../../src/agent/history/tool-messages.ts'
import type { ModelMessage } from '../../../src/llm/llm.ts'
import { tool } from '../../conversations/fixtures.ts'

const expectReviewed = (values: unknown, name: string): Promise<void> =>
  expect(`${JSON.stringify(values, undefined, 1)}\n`).toMatchFileSnapshot(join(import.meta.dirname, `${name}.txt`))

const IMAGE = { type: 'image', media_type: 'image/png', data: 'AAAA' } as const
const TEXT = { type: 'text', text: 'words' } as const

test('a run ends at each of its limits, and says what to do', async () => {
  const none: RunLimits = {
    maxSteps: undefined,
    maxIterations: 9,
    maxTokens: undefined,
    maxBudgetUsd: undefined,
    allowsUnpriced: false,
  }
  const endOf = (limits: Partial<RunLimits>, habit?: Habit, costUsd: number | undefined = 2): unknown => {
    const context: LimitReadings = {
      steps: () => 5,
      stuckIn: () => habit,
      isNearlyStuck: () => false,
      limits: () => ({ ...none, ...limits }),
      spent: () => ({ tokens: 50, costUsd }),
    }
    return metLimit(context) ?? 'continues'
  }
  const habits: Habit[] = ['same', 'failures', 'texts']
  await expectReviewed(
    {
      none: endOf({}),
      steps: [4, 5, 6].map((maxSteps) => endOf({ maxSteps })),
      iterations: [4, 5, 6].map((maxIterations) => endOf({ maxIterations })),
      tokens: [49, 50, 51].map((maxTokens) => endOf({ maxTokens })),
      budget: [1.9, 2, 2.1].map((maxBudgetUsd) => endOf({ maxBudgetUsd })),
      unknownCost: [0, 1].map((maxBudgetUsd) => endOf({ maxBudgetUsd }, undefined, undefined)),
      both: endOf({ maxTokens: 51, maxBudgetUsd: 2 }),
      stuck: habits.map((habit) => endOf({ maxSteps: 1 }, habit)),
      time: timeLimit(),
      CUT_OFF,
    },
    'loop-ends',
  )
})

test('the prompt tells about what is there', async () => {
  const all = ['Bash', 'FileEditor', 'TaskTracker', 'Finish', 'AskUserQuestion', 'Other']
  const parts = { workdir: '/w', tools: [], extensions: [], microagents: [] }
  await expectReviewed(
    [
      buildSystemPrompt(parts),
      buildSystemPrompt({ ...parts, hasMoreTools: true }),
      buildSystemPrompt({ ...parts, additionalDirectories: ['/a', '/b'] }),
      buildSystemPrompt({ ...parts, tools: all }),
      buildSystemPrompt({ ...parts, base: 'Base.', project: ['P'], extensions: ['E1', 'E2'], microagents: ['M'] }),
    ].map((prompt) => prompt.split('\n')),
    'prompts',
  )
})

const result = (fields: Partial<ResultDraft>): ResultDraft => ({
  type: 'ToolResult',
  source: 'environment',
  run_id: 'r',
  tool_use_id: 'c',
  output: 'said',
  is_error: false,
  duration_ms: 1,
  ...fields,
})

test('the model reads of a call what was sent, and of its result what happened', async () => {
  const render = (name: string, output: unknown) =>
    typeof output === 'string' ? output : `${name}: ${JSON.stringify(output)}`
  const event = { id: 'i', seq: 1, timestamp: '', conversation_id: 'x', version: 1 } as const
  const use = (input: unknown) =>
    toModelCall({ ...event, type: 'ToolUse', source: 'agent', tool_use_id: 'c', name: 'T', input })
  const results: Partial<ResultDraft>[] = [
    {},
    { output: '' },
    { output: ' \n' },
    { output: { a: 1 } },
    { output: [TEXT, IMAGE] },
    { output: [TEXT] },
    { is_error: true, error_type: 'failed', error_message: 'broken' },
    { is_error: true, error_type: 'failed', error_message: 'said' },
    { is_error: true, error_type: 'failed' },
    { error_message: 'broken' },
    { ran_input: { b: 1 }, changed_by: 'hook' },
    { ran_input: { b: 1 }, changed_by: 'user' },
    { context: 'from a hook', advice: 'stop' },
    { output: '', advice: 'stop' },
  ]
  await expectReviewed(
    {
      calls: [use({ a: 1 }), use('no {json'), use(undefined)],
      results: results.map((fields) => [fields, toToolMessage(result(fields), 'T', render)]),
      redacted: redactOutput([TEXT, IMAGE, { type: 'image', media_type: 'image/png', data: 'secret' }], (text) =>
        text.replaceAll(/secret|words/g, '#'),
      ),
      redactedText: redactOutput({ a: ['secret'] }, (text) => text.replaceAll('secret', '#')),
    },
    'tool-messages',
  )
})

test('a result counts as failed when its call was at fault', async () => {
  const results: Partial<ResultDraft>[] = [
    {},
    ...(['failed', 'denied', 'timeout', 'interrupted', 'rejected'] as const).map((error_type) => ({
      is_error: true,
      error_type,
      error_message: ' why ',
    })),
    { is_error: true },
    { output: { exit_code: 0, stdout: 'o', stderr: 'e' } },
    { output: { exit_code: 1, stdout: 'o', stderr: 'e' } },
    { output: { exit_code: '1', stdout: 1, stderr: 'e' } },
    { output: { exit_code: -1 } },
    { output: null },
    { output: 7 },
  ]
  await expectReviewed(
    results.map((fields) => [fields, hasFailed(result(fields))]),
    'failures',
  )
})

test('a request that providers would refuse has its faults listed', async () => {
  const user = (text: string): ModelMessage => ({ role: 'user', content: [{ type: 'text', text }] })
  const empty: ModelMessage = { role: 'user', content: [] }
  const says = (text: string, ...ids: string[]): ModelMessage => ({
    role: 'assistant',
    text,
    toolCalls: ids.map((id) => ({ id, name: 'T', arguments: '{}' })),
  })
  const gets = (toolCallId: string, content = 'ok'): ModelMessage => ({ role: 'tool', toolCallId, content })
  const requests: ModelMessage[][] = [
    [],
    [user('a'), says('b'), user('c')],
    [user('a'), says('', 'x', 'y'), gets('x'), gets('y'), says('b')],
    [user('a'), says('', 'x', 'y'), gets('y'), gets('x')],
    [user('a'), says('', 'x', 'y'), gets('x')],
    [user('a'), says('', 'x'), user('b')],
    [user('a'), says('', 'x', 'x'), gets('x'), gets('x')],
    [user('a'), says('b'), says('c')],
    [user('a'), says(' ')],
    [user('a'), says('', 'x'), gets('x', ' ')],
    [user('a'), gets('x')],
    [user(' ')],
    [empty],
    [{ role: 'user', content: [IMAGE] }],
    [says('a'), user('b')],
  ]
  await expectReviewed(
    requests.map((messages) => [messages.map(({ role }) => role).join(' '), ...findFaults({ messages })]),
    'faults',
  )
})

test('the input of a call is refused with a reason, and its access is that of what is accepted', async () => {
  const input = z.object({ path: z.string(), more: z.number().optional() })
  const known = { ...tool('T', () => ({ output: '' })), input, access: () => ({ kind: 'read' as const, paths: ['p'] }) }
  const inputs: unknown[] = [
    { path: 'a' },
    { path: 'a', more: null },
    { path: null },
    { path: 1, more: 'x' },
    {},
    '',
    'null',
    '[1]',
    '1',
    '"a"',
    '{"path": ',
    '['.repeat(100_000),
  ]
  const many = {
    ...known,
    input: z.object(Object.fromEntries(Array.from('abcdefghijklm', (key) => [key, z.string()]))),
  }
  const faultOf = (...call: Parameters<typeof readInput>) => {
    const toolInput = readInput(...call)
    return 'fault' in toolInput ? toolInput.fault : undefined
  }
  await expectReviewed(
    {
      faults: inputs.map((each) => [
        JSON.stringify(each).slice(0, 40),
        faultOf(known, each) ?? 'accepted',
        accessOf(known, each),
      ]),
      many: faultOf(many, {}),
      unknown: [faultOf(undefined, {}), accessOf(undefined, {})],
      harmless: accessOf({ ...known, harmless: true }, { path: 'a' }),
      withoutAccess: accessOf(
        tool('T', () => ({ output: '' })),
        {},
      ),
    },
    'inputs',
  )
})

test('a long message of a subagent keeps its beginning and its end', async () => {
  const text = (length: number) => 'ab'.repeat(length).slice(0, length)
  const shown = [49_999, 50_000, 50_001, 50_002].map((length) => {
    const bounded = boundMessage(text(length))
    const [head = '', note, tail] = bounded.split('\n')
    return [length, bounded.length, head.length, note, tail?.length]
  })
  await expectReviewed({ shown, halved: boundMessage('😀'.repeat(30_001)).isWellFormed() }, 'subagent-messages')
})
