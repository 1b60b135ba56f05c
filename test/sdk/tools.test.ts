import { afterAll, expect, test } from 'vitest'
import { z } from 'zod'
import * as mini from 'zod/mini'
import type { QueryEvent, ToolHandler } from '../../src/index.ts'
import { query, run, tool } from '../../src/index.ts'
import { acquireHost } from '../../src/sdk/local/shared-host.ts'
import { setSdkStage } from './stage.ts'
import { answersIn } from '../support/answering.ts'

const stage = await setSdkStage()
// It starts once, and not for each query.
const host = acquireHost(stage.options.persistDir)
await host.server()
afterAll(async () => {
  await host.release()
  await stage[Symbol.asyncDispose]()
})

const own = (handler: ToolHandler<{ n?: number | undefined }>, timeoutS?: number) =>
  tool('own', 'A tool of this program.', { n: z.number().optional() }, handler, { timeoutS })

async function resultOf(handler: ToolHandler<{ n?: number | undefined }>, input = '{}') {
  const { options } = stage
  const { events, stopReason } = await run({
    prompt: `call own ${input}`,
    options: { ...options, tools: [own(handler)] },
  })
  expect(stopReason).toBe('completed')
  return events.find((event) => event.type === 'ToolResult')
}

const CIRCULAR: Record<string, unknown> = {}
CIRCULAR['self'] = CIRCULAR

test.each<[string, ToolHandler<{ n?: number | undefined }>, object]>([
  ['text', () => 'seventeen', { output: 'seventeen', is_error: false }],
  ['a JSON value', () => ({ n: [1, null] }), { output: { n: [1, null] }, is_error: false }],
  ['nothing', () => {}, { output: '', is_error: false }],
  [
    'a result of MCP',
    () => ({ content: [{ type: 'text', text: 'not found' }], isError: true }),
    { output: [{ type: 'text', text: 'not found' }], is_error: true },
  ],
  ['a circular value', () => CIRCULAR, { is_error: true, output: expect.stringContaining('circular') }],
  ['a BigInt', () => ({ n: 1n }), { is_error: true, output: expect.stringContaining('BigInt') }],
  ['a function', () => () => 1, { is_error: true, output: expect.stringContaining('not JSON') }],
  ['100 MB', () => 'x'.repeat(100_000_000), { is_error: true, output: expect.stringContaining('Return less') }],
  [
    'what the server refuses',
    () => ({ a: Array.from({ length: 60_000 }, () => []) }),
    { is_error: true, output: expect.stringContaining('refused') },
  ],
])('the agent reads %s that a handler returns', async (_what, handler, result) => {
  expect(await resultOf(handler)).toMatchObject(result)
})

test.each([
  ['an error', new Error('no such order'), 'no such order'],
  ['something else', Object.create(null), 'an error without a message'],
  ['nothing', undefined, 'undefined'],
])('a handler that throws %s is an error result', async (_what, thrown, output) => {
  const result = await resultOf(() => {
    throw thrown
  })
  expect(result).toMatchObject({ is_error: true, output })
})

test('schemas of another kind of zod 4 are checked, too', async () => {
  const schema = mini.object({ n: mini.number() })
  const own = tool('own', 'A tool of this program.', schema as never, ({ n }) => Number(n) + 1)
  const options = { ...stage.options, tools: [own] }
  expect((await run({ prompt: 'call own {"n": 16}', options })).finalText).toContain('17')
  expect((await run({ prompt: 'call own {"n": "16"}', options })).finalText).toContain('not valid')
})

test('the input is checked before the handler is called', async () => {
  const result = await resultOf(() => expect.unreachable(), '{"n": "seventeen"}')
  expect(result).toMatchObject({ is_error: true, output: expect.stringContaining('expected number') })
})

test('a handler that never returns is ended by its timeout, and its signal aborts', async () => {
  const aborted = Promise.withResolvers<void>()
  const never: ToolHandler<object> = (_input, { signal }) => {
    signal.addEventListener('abort', () => aborted.resolve())
    return new Promise(() => {})
  }
  const outcome = await run({ prompt: 'call own', options: { ...stage.options, tools: [own(never, 0.3)] } })
  expect(outcome.events.find((event) => event.type === 'ToolResult')).toMatchObject({ error_type: 'timeout' })
  await aborted.promise
})

test('a handler may take longer than a call waits inside its run', async () => {
  // The call rests after five seconds.
  const slow: ToolHandler<object> = async (_input, { signal }) => {
    await new Promise((resolve) => {
      watch = (event) => event.type === 'StatusUpdate' && event.status === 'waiting_for_client' && resolve(undefined)
      signal.addEventListener('abort', resolve)
    })
    return 'late'
  }
  let watch = (_event: QueryEvent): unknown => undefined
  const asking = query({ prompt: 'call own', options: { ...stage.options, tools: [own(slow)] } })
  const events: QueryEvent[] = []
  for await (const event of asking) {
    events.push(event)
    watch(event)
  }
  expect(events.find((event) => event.type === 'Result')).toMatchObject({ final_text: 'It said: late' })
})

test('a query ends while the session waits for a tool of another program', async () => {
  const { sessionId: resume } = await run({ prompt: 'hello', options: { ...stage.options, tools: [own(() => 1)] } })
  const waiting = await run({ prompt: 'call own', options: { ...stage.options, resume } })
  expect(waiting.stopReason).toBe('waiting_for_client')
  const answered = await run({ options: { ...stage.options, resume, tools: [own(() => 17)] } })
  expect(answered).toMatchObject({ stopReason: 'completed', finalText: 'It said: 17' })
})

test('return() in the middle of a tool stops the run and aborts the signal', async () => {
  const begun = Promise.withResolvers<AbortSignal>()
  const never: ToolHandler<object> = (_input, { signal }) => (begun.resolve(signal), new Promise(() => {}))
  const asking = query({ prompt: 'call own', options: { ...stage.options, tools: [own(never)] } })
  for await (const event of asking) if (event.type === 'RequestOpened') break
  expect((await begun.promise).aborted).toBe(true)
  const resumed = await run({ prompt: 'hello', options: { ...stage.options, resume: asking.sessionId } })
  expect(resumed).toMatchObject({ finalText: 'hello', stopReason: 'completed' })
})

test('a call is executed once by two queries of one session', async () => {
  let calls = 0
  const tools = [own(() => ++calls)]
  const { sessionId: resume } = await run({ prompt: 'hello', options: { ...stage.options, tools } })
  const options = { ...stage.options, resume, tools }
  const both = await Promise.all(['call own', 'call own'].map((prompt) => run({ prompt, options })))
  const answered = new Set(both.flatMap(({ events }) => answersIn(events, 'client_tool')).map(({ id }) => id))
  expect(calls).toBe(answered.size)
  for (const { stopReason } of both) expect(stopReason).toBe('completed')
})

test('a schema that JSON Schema cannot say is refused where the tool is made', () => {
  expect(() => tool('own', '', { when: z.date() }, () => 1)).toThrow('The schema of tool own cannot be written')
  const older = { n: { _def: { typeName: 'ZodNumber' } } } as never
  expect(() => tool('own', '', older, () => 1)).toThrow('not made of fields of zod 4')
})
