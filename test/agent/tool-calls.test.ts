import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import type { EventDraft } from '../../src/contract/events/event.ts'
import { ToolCalls } from '../../src/agent/tool-calls.ts'
import type { ToolCall } from '../../src/state/tool-call.ts'
import type { FileEdit } from '../../src/contract/events/file-edit.ts'
import type { CallOutcome, Tool } from '../../src/tools/tool.ts'
import { createRedactor } from '../../src/security/redaction/redactor.ts'
import { gate, tool } from '../conversations/fixtures.ts'

type Result = Extract<EventDraft, { type: 'ToolResult' }>

/** The calls of one conversation, what they stored, and a way to have storing fail. */
function setUp(...tools: Tool[]) {
  const redactor = createRedactor()
  redactor.set('PIN', 'hunter2-hunter2')
  const results: Result[] = []
  const crashes: unknown[] = []
  const shown: string[] = []
  const storage = { fails: false }
  const toolCalls = new ToolCalls({
    tools,
    context: () => ({ conversationId: 'c', workdir: '/work', openRequest: async () => undefined }),
    redactor,
    emit: async (drafts) => {
      if (storage.fails) throw new Error('there is no room')
      // What a log cannot say in JSON it cannot store.
      results.push(...(JSON.parse(JSON.stringify(drafts)) as Result[]))
    },
    adviceFor: () => undefined,
    onOutput: (id, stream, text, offset) => shown.push(`${id} ${stream} ${offset} ${text}`),
    onCrash: (error) => crashes.push(error),
  })
  return { toolCalls, results, crashes, shown, storage }
}

const callOf = (name: string, input: unknown = {}, toolUseId = 'call-1'): ToolCall => ({
  toolUseId,
  name,
  input,
  runId: 'run-1',
})

test('a call runs with its parsed input, and has one result', async () => {
  const add = {
    ...tool('Add', (input) => ({ output: (input['a'] as number) + (input['b'] as number) })),
    input: z.object({ a: z.number(), b: z.number().default(1) }),
  } as Tool
  const { toolCalls, results } = setUp(add)
  expect(await toolCalls.run(callOf('Add', { a: 2 }))).toEqual({ finishes: false })
  expect(results).toMatchObject([
    {
      type: 'ToolResult',
      run_id: 'run-1',
      tool_use_id: 'call-1',
      output: 3,
      is_error: false,
      duration_ms: expect.any(Number),
    },
  ])
  expect(results[0]).not.toHaveProperty('error_type')
})

describe('is reported to the model, and nothing runs:', () => {
  const strict = { ...tool('Strict', () => ({ output: 'ran' })), input: z.strictObject({ path: z.string() }) } as Tool

  test.each([
    ['an unknown tool', callOf('Strickt'), 'unknown_tool', /no tool named "Strickt".*The tools are: Strict\./],
    [
      'arguments that are no JSON',
      callOf('Strict', '{"path": '),
      'invalid_input',
      /not a JSON object: .*JSON.*Send the call again/,
    ],
    ['arguments that are null', callOf('Strict', 'null'), 'invalid_input', /not a JSON object: it is null/],
    ['arguments that are a list', callOf('Strict', '["/tmp"]'), 'invalid_input', /not a JSON object: it is an array/],
    ['arguments that are a number', callOf('Strict', '7'), 'invalid_input', /not a JSON object: it is a number/],
    ['an argument that is missing', callOf('Strict', {}), 'invalid_input', /do not fit Strict: path: /],
    [
      'an argument that is unknown',
      callOf('Strict', { path: 'x', pth: 'x' }),
      'invalid_input',
      /do not fit Strict: .*pth/,
    ],
  ] as const)('%s', async (_, call, error_type, message) => {
    const { toolCalls, results } = setUp(strict)
    await toolCalls.run(call)
    expect(results).toMatchObject([
      {
        is_error: true,
        error_type,
        error_message: expect.stringMatching(message),
        output: expect.stringMatching(message),
      },
    ])
  })

  test('an unknown tool where there is none at all', async () => {
    const { toolCalls, results } = setUp()
    await toolCalls.run(callOf('Bash'))
    expect(results[0]?.error_message).toMatch(/The tools are: none\./)
  })
})

describe('a tool that breaks its promises still has one result:', () => {
  test('one that throws', async () => {
    const { toolCalls, results, crashes } = setUp(
      tool('Bad', () => Promise.reject(new Error('it holds hunter2-hunter2'))),
    )
    await toolCalls.run(callOf('Bad'))
    expect(results).toMatchObject([
      { is_error: true, error_type: 'failed', error_message: 'The tool failed: it holds <secret:PIN>' },
    ])
    expect(crashes).toHaveLength(1)
  })

  test('one that throws synchronously', async () => {
    const bad = {
      ...tool('Bad', () => ({ output: '' })),
      run: () => {
        throw new TypeError('no')
      },
    } as Tool
    const { toolCalls, results } = setUp(bad)
    await toolCalls.run(callOf('Bad'))
    expect(results).toMatchObject([{ is_error: true, error_type: 'failed' }])
  })

  const circle: Record<string, unknown> = {}
  circle['self'] = circle
  test.each([
    ['a number JSON does not know', { size: 10n }],
    ['a circle', circle],
  ])('one that returns what JSON cannot express: %s', async (_, output) => {
    const { toolCalls, results } = setUp(tool('Odd', () => ({ output })))
    await toolCalls.run(callOf('Odd'))
    expect(results).toMatchObject([{ is_error: true, error_type: 'failed' }])
  })

  test('one that returns nothing', async () => {
    const { toolCalls, results } = setUp(tool('Mute', () => ({ output: undefined })))
    await toolCalls.run(callOf('Mute'))
    expect(results).toMatchObject([{ is_error: false, output: '' }])
    expect(toolCalls.render('Mute', undefined)).toBe('')
  })

  test('one whose rendering fails is shown as JSON', () => {
    const { toolCalls } = setUp(
      tool('Odd', () => ({ output: '' }), {
        render: () => {
          throw new Error('no')
        },
      }),
    )
    expect(toolCalls.render('Odd', { a: 1 })).toBe('{"a":1}')
  })
})

test('a call that runs already is awaited, not run a second time', async () => {
  const slow = gate('Slow')
  const { toolCalls, results } = setUp(slow.tool)
  const both = [toolCalls.run(callOf('Slow')), toolCalls.run(callOf('Slow'))]
  slow.open()
  await Promise.all(both)
  expect(slow.calls()).toBe(1)
  expect(results).toHaveLength(1)
})

test('a call that ran and could not be stored is stored later, and never runs twice', async () => {
  const slow = gate('Slow')
  slow.open()
  const { toolCalls, results, storage } = setUp(slow.tool)
  storage.fails = true
  await expect(toolCalls.run(callOf('Slow'))).rejects.toThrow('no room')
  await expect(toolCalls.run(callOf('Slow'))).rejects.toThrow('no room')
  storage.fails = false
  await toolCalls.run(callOf('Slow'))
  expect(slow.calls()).toBe(1)
  expect(results).toMatchObject([{ output: 'through', is_error: false }])
})

test('interrupt ends all that runs and resolves when each has its result', async () => {
  const [one, two] = [gate('One'), gate('Two')]
  const { toolCalls, results } = setUp(one.tool, two.tool)
  const runs = [toolCalls.run(callOf('One', {}, 'a')), toolCalls.run(callOf('Two', {}, 'b'))]
  await Promise.all([one.entered, two.entered])
  await toolCalls.interrupt()
  expect(results.map((result) => [result.tool_use_id, result.error_type])).toEqual([
    ['a', 'interrupted'],
    ['b', 'interrupted'],
  ])
  await Promise.all(runs)
})

test('interrupt waits for a tool that ignores its signal for less than two seconds, and then no longer', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const deaf = gate('Deaf', { stubborn: true })
  const { toolCalls, results } = setUp(deaf.tool)
  const running = toolCalls.run(callOf('Deaf'))
  await deaf.entered
  let hasResponded = false
  const interrupted = toolCalls.interrupt().then(() => (hasResponded = true))
  await vi.advanceTimersByTimeAsync(1000)
  expect(hasResponded, 'the tool still has time to end').toBe(false)
  await vi.advanceTimersByTimeAsync(999)
  expect(hasResponded).toBe(true)
  expect(results).toEqual([])
  deaf.open()
  await Promise.all([running, interrupted])
  expect(results).toMatchObject([{ output: 'through' }])
})

test('only a tool that finishes, and did not fail, ends the run', async () => {
  const finishing = (fails: boolean) =>
    tool(
      'Finish',
      () =>
        fails
          ? { output: '', error: { type: 'failed', message: 'not yet' } }
          : { output: 'All done, hunter2-hunter2.' },
      { finishes: true },
    )
  expect(await setUp(finishing(false)).toolCalls.run(callOf('Finish'))).toEqual({
    finishes: true,
    finalText: 'All done, <secret:PIN>.',
  })
  expect(await setUp(finishing(true)).toolCalls.run(callOf('Finish'))).toEqual({ finishes: false })
})

test('secrets are redacted in every string of an output, including keys, and in the live output', async () => {
  const leaky = tool('Leaky', (_, { onOutput }) => {
    onOutput('stdout', 'It is hunter2')
    onOutput('stderr', 'é')
    onOutput('stdout', '-hunter2! hun')
    return {
      output: { lines: ['a hunter2-hunter2', { 'hunter2-hunter2': 'hunter2-hunter2' }], size: 1 },
      fullOutputPath: '/tmp/x',
      truncated: true,
    }
  })
  const { toolCalls, results, shown } = setUp(leaky)
  await toolCalls.run(callOf('Leaky'))
  expect(results).toMatchObject([
    {
      output: { lines: ['a <secret:PIN>', { '<secret:PIN>': '<secret:PIN>' }], size: 1 },
      truncated: true,
      full_output_path: '/tmp/x',
    },
  ])
  const shownOf = (stream: string) => shown.flatMap((line) => line.split(`call-1 ${stream} `)[1] ?? [])
  expect(
    shownOf('stdout')
      .map((line) => line.replace(/^\d+ /, ''))
      .join(''),
  ).toBe('It is <secret:PIN>! hun')
  expect(shownOf('stderr')).toEqual(['0 é'])
  let offset = 0
  for (const line of shownOf('stdout')) {
    expect(Number.parseInt(line)).toBe(offset)
    offset += line.length - line.indexOf(' ') - 1
  }
})

test('an input is checked a second time only if it has a null that may be left out', async () => {
  let checks = 0
  const input = z.object({ path: z.string().refine(() => (checks += 1) < 0), depth: z.int().nullish() })
  const { toolCalls } = setUp({ ...tool('Strict', () => ({ output: '' })), input })
  await toolCalls.run(callOf('Strict', { path: 'x' }, 'a'))
  expect(checks).toBe(1)
  await toolCalls.run(callOf('Strict', { path: 'x', depth: null }, 'b'))
  expect(checks).toBe(3)
})

test('null for an optional argument counts as absent, except if the argument accepts null', async () => {
  const input = z.strictObject({ path: z.string(), depth: z.int().optional(), parent: z.string().nullable() })
  const seen: unknown[] = []
  const { toolCalls, results } = setUp({ ...tool('Strict', (given) => ({ output: seen.push(given) })), input })
  await toolCalls.run(callOf('Strict', { path: 'x', parent: null }, 'a'))
  expect(seen).toEqual([{ path: 'x', parent: null }])
  const optional = {
    ...tool('Loose', (given) => ({ output: seen.push(given) })),
    input: z.strictObject({ path: z.string(), depth: z.int().optional() }),
  } as Tool
  const loose = setUp(optional)
  await loose.toolCalls.run(callOf('Loose', { path: 'x', depth: null }))
  expect(seen[1]).toEqual({ path: 'x' })
  await loose.toolCalls.run(callOf('Loose', { path: null }))
  expect(loose.results.at(-1)).toMatchObject({
    error_type: 'invalid_input',
    error_message: expect.stringContaining('path'),
  })
  expect(results).toHaveLength(1)
})

test('an image that holds a secret is left out whole, others stay as they are', async () => {
  const image = (content: string) => ({
    type: 'image',
    media_type: 'image/png',
    data: Buffer.from(content).toString('base64'),
  })
  const output = [{ type: 'text', text: 'hunter2-hunter2' }, image('innocent'), image('x hunter2-hunter2')]
  const { toolCalls, results } = setUp(tool('Look', () => ({ output })))
  await toolCalls.run(callOf('Look'))
  expect(results[0]!.output).toEqual([
    { type: 'text', text: '<secret:PIN>' },
    image('innocent'),
    { type: 'text', text: expect.stringMatching(/left out/) },
  ])
})

test('tools are described in the order given, the schema as a model takes it', () => {
  const one = {
    ...tool('One', () => ({ output: '' })),
    input: z.strictObject({ path: z.string().describe('Where.'), depth: z.int().default(1) }),
  } as Tool
  const { toolCalls } = setUp(
    one,
    tool('Two', () => ({ output: '' })),
  )
  expect(toolCalls.descriptions.map((described) => described.name)).toEqual(['One', 'Two'])
  expect(toolCalls.descriptions[0]?.inputSchema).toMatchObject({
    type: 'object',
    required: ['path'],
    properties: { path: { type: 'string', description: 'Where.' } },
  })
  expect(toolCalls.descriptions[0]?.inputSchema).not.toHaveProperty('$schema')
})

test('the last of the parallel calls that finish the run does so, and none if no call finishes it', async () => {
  const say = tool('Say', () => ({ output: 'said' }))
  const finish = { ...tool('Finish', ({ text }) => ({ output: text })), finishes: true } as Tool
  const { toolCalls } = setUp(say, finish)
  const end = (text: string) => callOf('Finish', { text }, text)
  expect(await toolCalls.runInParallel([callOf('Say')])).toEqual({ finishes: false })
  expect(await toolCalls.runInParallel([end('a'), end('b'), callOf('Say')])).toEqual({
    finishes: true,
    finalText: 'b',
  })
})

describe('a result says of its call', () => {
  const outcome = { output: 'ran' }
  const change: FileEdit = { operation: 'modify', path: 'a' }

  test.each<[string, Partial<ToolCall>, Partial<CallOutcome>, Partial<Result>]>([
    ['no more than there is', {}, {}, {}],
    ['no run where there was none', { runId: undefined }, {}, { run_id: undefined }],
    ['that a user has changed it', { isChanged: true }, {}, { ran_input: { a: 1 } }],
    [
      'that a hook has changed it',
      { isChanged: true, changedBy: 'hook' },
      {},
      { ran_input: { a: 1 }, changed_by: 'hook' },
    ],
    ['what hooks say to the model', { hook: { context: 'Mind the gap.' } }, {}, { context: 'Mind the gap.' }],
    ['nothing of hooks that say nothing', { hook: { decision: 'allow' } }, {}, {}],
    ['that it was cut', {}, { truncated: true }, { truncated: true }],
    ['that it was not cut', {}, { truncated: false }, {}],
    ['where all of it is', {}, { fullOutputPath: '/all.txt' }, { full_output_path: '/all.txt' }],
    ['which files it has changed', {}, { changes: [change] }, { changes: [change] }],
    [
      'why it failed, without secrets',
      {},
      { error: { type: 'failed', message: 'with hunter2-hunter2' } },
      { is_error: true, error_type: 'failed', error_message: 'with <secret:PIN>' },
    ],
  ])('%s', async (_what, fields, more, expected) => {
    const { toolCalls, results } = setUp(tool('Run', () => ({ ...outcome, ...more })))
    await toolCalls.run({ ...callOf('Run', { a: 1 }), ...fields })
    expect(results).toEqual([
      {
        type: 'ToolResult',
        source: 'environment',
        run_id: 'run-1',
        tool_use_id: 'call-1',
        output: 'ran',
        is_error: false,
        duration_ms: expect.any(Number),
        ...expected,
      },
    ])
  })
})

test('without tools that come and go, nothing is waited for', () => {
  const { toolCalls } = setUp()
  expect([toolCalls.prepare, toolCalls.definitionOf('Other')]).toEqual([undefined, undefined])
  expect(toolCalls.accessOf({ name: 'Other', input: {} })).toEqual({ kind: 'none' })
  expect(toolCalls.readInput('Other', {})).toHaveProperty('fault')
  expect(toolCalls.questionsIn([callOf('Other')], new Map())).toEqual([])
})

test('calls that ask the user are those of tools with questions, if they are valid and not denied', () => {
  const ask = {
    ...tool('Ask', () => ({ output: '' })),
    input: z.object({ text: z.string() }),
    questions: (input: unknown) => [input],
  } as unknown as Tool
  const { toolCalls } = setUp(
    ask,
    tool('Run', () => ({ output: '' })),
  )
  const calls = [
    callOf('Ask', { text: 'Which?', more: 1 }, 'asks'),
    callOf('Ask', { text: 1 }, 'invalid'),
    callOf('Ask', { text: 'No?' }, 'denied'),
    callOf('Run', { text: 'Which?' }, 'runs'),
    callOf('Other', { text: 'Which?' }, 'unknown'),
  ]
  expect(toolCalls.questionsIn(calls, new Map([['denied', 'a rule']]))).toEqual([
    { toolUseId: 'asks', questions: [{ text: 'Which?' }] },
  ])
})
