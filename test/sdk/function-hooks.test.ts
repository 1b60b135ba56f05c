/** Hooks that are functions, where the server does not call them itself: it asks for their answers. */
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, expect, test } from 'vitest'
import type { HooksOption, QueryOptions } from '../../src/index.ts'
import { createServer, query, run } from '../../src/index.ts'
import { removeLeftHooks } from '../../src/sdk/hooks/left-hooks.ts'
import { setSdkStage, startHooked } from './stage.ts'
import { until } from '../support/until.ts'

const stage = await setSdkStage()
const server = await createServer({ persistDir: join(stage.home, 'server') })
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await stage[Symbol.asyncDispose]()
})
const { client } = server
const place = { persistDir: undefined, server: { baseUrl: server.url, apiKey: server.apiKey } }
const options: QueryOptions = { ...stage.options, ...place, tools: ['Bash'] }
const bash = (command: string) => `call Bash ${JSON.stringify({ command })}`
const pre = (...hooks: NonNullable<HooksOption['PreToolUse']>[number]['hooks']) => ({ PreToolUse: [{ hooks }] })
const specific = (fields: object) => ({ hookSpecificOutput: { hookEventName: 'PreToolUse', ...fields } })
const namesIn = async (id: string) => (await client.conversation(id).get()).client_hooks

test('functions decide about calls, change them and see their results, as in one process', async () => {
  const seen: unknown[] = []
  const same = () => void seen.push('same')
  const hooks: HooksOption = {
    UserPromptSubmit: [{ hooks: [() => ({ systemMessage: 'heard' })] }],
    PreToolUse: [
      { matcher: 'Bash', hooks: [same, same] },
      {
        hooks: [
          ({ tool_name: name }, toolUseId) => {
            seen.push([name, typeof toolUseId])
            return specific({ permissionDecision: 'allow', updatedInput: { command: 'echo changed' } })
          },
        ],
      },
    ],
    PostToolUse: [{ hooks: [({ tool_response: output }) => void seen.push(output)] }],
    Stop: [{ hooks: [async () => ({})] }],
  }
  const { events, finalText, sessionId } = await run({
    prompt: bash('echo hello'),
    options: { ...options, permissionMode: 'deny', hooks },
  })
  expect(finalText).toContain('changed')
  expect(seen).toMatchObject(['same', 'same', ['Bash', 'string'], { stdout: 'changed\n' }])
  const points = events.flatMap((event) => (event.type === 'HookEvent' ? [event.hook_point] : []))
  expect(points).toEqual(['UserPromptSubmit', 'PreToolUse', 'PreToolUse', 'PreToolUse', 'PostToolUse', 'Stop'])
  expect(await namesIn(sessionId), 'after the query').toEqual([])
})

test('a function that throws, answers garbage or nothing in time denies the call', async () => {
  const circular: { self?: object } = {}
  circular.self = circular
  const signals: AbortSignal[] = []
  for (const [hook, why, timeout] of [
    [() => Promise.reject(new Error('out of order')), 'out of order', 60],
    [() => circular, 'circular', 60],
    [() => ({ hookSpecificOutput: { permissionDecision: 'maybe' } }), 'the answer was refused', 60],
    [() => '{ no JSON', 'the answer was refused', 60],
    [
      (...[, , { signal }]: [unknown, unknown, { signal: AbortSignal }]) => (
        signals.push(signal),
        new Promise(() => {})
      ),
      'within 0.5 s',
      0.5,
    ],
  ] as const) {
    const hooks = { PreToolUse: [{ hooks: [hook], timeout }] }
    const { events } = await run({ prompt: bash('echo x'), options: { ...options, hooks } })
    expect(events.find((event) => event.type === 'ToolResult')).toMatchObject({
      error_type: 'denied',
      output: expect.stringContaining(why),
    })
  }
  expect(signals).toMatchObject([{ aborted: true }])
})

test('a message that is blocked is an error, and hooks answer while the program does not read events', async () => {
  const block = { UserPromptSubmit: [{ hooks: [() => ({ decision: 'block', reason: 'not today' })] }] }
  await expect(run({ prompt: 'x', options: { ...options, hooks: block } })).rejects.toThrow('not today')
  const answered = Promise.withResolvers<void>()
  const asking = query({
    prompt: bash('echo x'),
    options: { ...options, hooks: { PostToolUse: [{ hooks: [() => answered.resolve()] }] } },
  })
  for await (const event of asking) if (event.type === 'ToolUse') await answered.promise
})

test.each([
  ['a server elsewhere', options],
  ['a server in this process', { ...stage.options, tools: ['Write'] }],
])('a query waits for its functions that run in the background, and not if it is left, with %s', async (_, there) => {
  const files = Array.from({ length: 10 }, (_each, at) => `file-${at}`)
  const write = files.map((file_path) => ({ name: 'Write', arguments: { file_path, content: 'x' } }))
  const ended = Promise.withResolvers<void>()
  const changed: unknown[] = []
  const watch = async ({ file_path: path }: Record<string, unknown>) => {
    await ended.promise
    changed.push(path)
  }
  const ask = (hook: (input: Record<string, unknown>) => Promise<void>) =>
    query({
      prompt: `calls ${JSON.stringify(write)}`,
      options: { ...there, tools: ['Write'], hooks: { FileChanged: [{ hooks: [hook] }] } },
    })
  for await (const event of ask(watch)) if (event.type === 'Result') ended.resolve()
  expect(changed).toHaveLength(files.length)
  for await (const event of ask(() => new Promise(() => {}))) if (event.type === 'Result') break
})

test('two programs with functions share a directory, and each answers for its own session', async () => {
  const shared = { persistDir: join(stage.home, 'shared') }
  const holding = Promise.withResolvers<void>()
  const asked: unknown[] = []
  async function* messages() {
    yield bash('echo own')
    await holding.promise
  }
  const watch = ({ tool_input: input }: Record<string, unknown>) => void asked.push(input)
  const own = run({ prompt: messages(), options: { ...stage.options, ...shared, tools: ['Bash'], hooks: pre(watch) } })
  await until('the first call', async () => asked.length > 0)
  const other = startHooked({ ...stage.options, ...shared }, bash('echo other'))
  const said = await text(other.stdout)
  holding.resolve()
  await own
  expect(asked).toEqual([{ command: 'echo own' }])
  expect(said).toContain('asked {"command":"echo other"}')
  expect(said, 'denied by its own hook').toContain(`of ${other.pid}`)
})

test('what programs left is removed from a session that is continued, and from its copy; what other clients have stays', async () => {
  const { sessionId } = await run({ prompt: 'hello', options })
  const { clientHooks } = client.conversation(sessionId)
  const blocking = {
    hooks: { UserPromptSubmit: [{ hooks: [{ id: 'gone', on_failure: 'block' as const, timeout: 0.1 }] }] },
  }
  await clientHooks.register('query-left', blocking)
  await clientHooks.register('policy', { hooks: {} })
  const asked: unknown[] = []
  const hooks = pre(({ tool_input: input }: Record<string, unknown>) => void asked.push(input))
  const { tools: _, ...later } = options
  const copy = await run({ prompt: bash('echo copy'), options: { ...later, hooks, fork: sessionId } })
  await run({ prompt: bash('echo one'), options: { ...later, hooks, resume: sessionId } })
  expect(asked).toEqual([{ command: 'echo copy' }, { command: 'echo one' }])
  expect([await namesIn(sessionId), await namesIn(copy.sessionId)]).toEqual([['policy'], ['policy']])
})

test('a query whose hooks another client removes ends with an error, and its run is stopped', async () => {
  let id = ''
  const remove = async () => {
    const { clientHooks } = client.conversation(id)
    for await (const { client: name } of clientHooks.list()) await clientHooks.remove(name)
    return new Promise(() => {})
  }
  const asking = query({ prompt: bash('echo x'), options: { ...options, hooks: pre(remove) } })
  const reading = (async () => {
    for await (const event of asking) id = event.conversation_id
  })()
  await expect(reading).rejects.toThrow('Another client has removed the hooks of this query')
  expect((await client.conversation(id).wait()).status).not.toBe('running')
})

test('the hooks of a program that is about to connect stay; those of one that is gone are removed', async () => {
  const { signal } = new AbortController()
  const names = ['query-slow', 'query-gone']
  // It has a second for that, which may be over before it is.
  await until('a program that connects in time', async () => {
    const { sessionId } = await run({ prompt: 'hello', options })
    const conversation = client.conversation(sessionId)
    for (const name of names)
      await conversation.clientHooks.register(name, { hooks: { PreToolUse: [{ hooks: [{ id: 'one' }] }] } })
    const removing = removeLeftHooks(conversation, names, signal)
    const connecting = conversation.events({ hook_client: 'query-slow', deltas: true })
    const first = connecting.next().catch(() => {})
    expect(await removing).toBe(true)
    const left = await namesIn(sessionId)
    expect(left).not.toContain('query-gone')
    await connecting.return(undefined)
    await first
    return left?.join() === 'query-slow'
  })
})
