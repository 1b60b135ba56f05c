/** Hooks that follow what has happened: the calls of a turn, denials, failures, compactions, changed files and completed tasks. */
import { access, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import type { ScriptedQuestion, ScriptedTurn } from '../../src/llm/scripted/script.ts'
import { setStage } from '../support/agent.ts'
import { decisionsFor } from '../support/answering-over-http.ts'
import { startReceiver } from '../support/receiver.ts'
import { KEY } from '../support/server.ts'
import { subscribe } from '../support/stream.ts'
import { until } from '../support/until.ts'
import { requestsOf } from './requests.ts'

const receiver = await startReceiver()
const stage = await setStage(({ body }) => turnFor(body), {
  env: { OPENHANDS_CALLBACK_ALLOW: '127.0.0.1' },
})
const { server } = stage
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
  await receiver[Symbol.asyncDispose]()
})

/** `run WORD…` runs a command for each word, `hang` three of which the second does not end, `edit NAME` creates a file, `fail` is refused by the model. */
function turnFor({ messages }: ScriptedQuestion['body']): ScriptedTurn {
  const last = messages.at(-1)
  const said = typeof last?.content === 'string' ? last.content : JSON.stringify(last?.content)
  if (last?.role === 'tool') return { text: 'Done.' }
  const [verb, ...words] = said.split(' ')
  if (verb === 'hang')
    return { calls: ['echo one', 'touch begun; sleep 600', 'echo three'].map((command) => bashCall(command)) }
  if (verb === 'run') return { calls: words.map((word) => bashCall(`echo ${word}`)) }
  if (verb === 'edit')
    return { calls: [{ name: 'FileEditor', arguments: { command: 'create', path: words[0], file_text: 'x' } }] }
  return verb === 'fail' ? { status: 401, error: { message: 'no such key' } } : { text: said }
}

function bashCall(command: string) {
  return { name: 'Bash', arguments: { command } }
}

const AS_OWNER = { authorization: `Bearer ${KEY}` }

/** Each call of a hook adds its payload to this file. */
const noted = (point: string, matcher?: string) => ({
  [point]: [{ ...(matcher !== undefined && { matcher }), hooks: [{ type: 'command', command: NOTE }] }],
})
const NOTE = `printf '%s\\n' "$(cat)" >> "$CLAUDE_PROJECT_DIR/noted"`

const call = (method: string, id: string, path = '', body?: unknown) =>
  server.call(method, `/conversations/${id}${path}`, body)

const begin = (id: string, content: string) =>
  call('POST', id, '/messages', { message: { role: 'user', content }, run: true })

const isThere = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  )

// oxlint-disable-next-line typescript/no-explicit-any -- as the hooks wrote them
async function payloads(id: string): Promise<any[]> {
  const { workdir } = (await call('GET', id)).body
  const text = await readFile(join(workdir, 'noted'), 'utf8').catch(() => '')
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
}

/** The hooks that watch are called in the background: all of these have ended, and there were no more of them. */
async function afterHooks(id: string, point: string, count: number) {
  await until(
    `${count} hooks of ${point}`,
    async () => (await stage.events(id, 'types=HookEvent')).filter(isAt(point)).length >= count,
  )
  const said = await payloads(id)
  expect(said.map(({ hook_event_name: name }) => name)).toEqual(Array.from({ length: count }, () => point))
  return said
}
const isAt = (point: string) => (event: { hook_point?: string }) => event.hook_point === point

describe('PostToolBatch', () => {
  test('is called once when all calls of a turn have ended, in their order, before the next request', async () => {
    const id = await stage.create({ hooks: noted('PostToolBatch') })
    await stage.say(id, 'run one two')
    const [batch] = await afterHooks(id, 'PostToolBatch', 1)
    expect(batch).toMatchObject({
      session_id: id,
      tool_calls: [
        { tool_name: 'Bash', tool_input: { command: 'echo one' }, tool_response: { stdout: 'one\n' } },
        { tool_name: 'Bash', tool_input: { command: 'echo two' }, tool_response: { stdout: 'two\n' } },
      ],
    })
    await stage.say(id, 'nothing to do')
    await afterHooks(id, 'PostToolBatch', 1)
  })

  test('tells the model something, or ends the run', async () => {
    const says = (answer: object) => ({
      PostToolBatch: [{ hooks: [{ type: 'command', command: `echo '${JSON.stringify(answer)}'` }] }],
    })
    const specific = { hookEventName: 'PostToolBatch', additionalContext: 'both are flaky' }
    const id = await stage.create({ hooks: says({ hookSpecificOutput: specific }) })
    await stage.say(id, 'run one')
    expect(JSON.stringify(stage.model.requests.at(-1)!.body.messages)).toContain('PostToolBatch hook: both are flaky')

    const ended = await stage.create({ hooks: says({ decision: 'block', reason: 'enough' }) })
    const before = stage.model.requests.length
    await stage.say(ended, 'run one')
    expect(stage.model.requests.length - before).toBe(1)
    expect((await stage.events(ended, 'types=Result')).at(-1)).toMatchObject({ stop_reason: 'hook' })
  })

  test('is not called for a turn that was interrupted, neither then nor with the next turn', async () => {
    const id = await stage.create({ hooks: noted('PostToolBatch') })
    const { workdir } = (await call('GET', id)).body
    await begin(id, 'hang')
    await until('the second call runs', () => isThere(join(workdir, 'begun')))
    expect((await call('POST', id, '/pause', { interrupt: true })).status).toBe(200)
    await stage.say(id, 'run later')
    const [batch] = await afterHooks(id, 'PostToolBatch', 1)
    expect(batch.tool_calls).toMatchObject([{ tool_input: { command: 'echo later' } }])
  })

  test('is called once for a turn, also if a pause or a kill of the server has ended the hook', async () => {
    receiver.answer = () => new Promise<never>(() => {})
    const before = receiver.received.length
    const hooks = { PostToolBatch: [{ hooks: [{ type: 'http', url: receiver.url }] }] }
    const id = await stage.create({ hooks })
    await begin(id, 'run one')
    await receiver.untilReceived((all) => all.length === before + 1)
    expect((await call('POST', id, '/pause', {})).status).toBe(200)
    await stage.say(id, 'nothing to do')

    await begin(id, 'run two')
    await receiver.untilReceived((all) => all.length === before + 2)
    await server.restart('SIGKILL')
    await stage.say(id, 'nothing to do')
    expect(receiver.received.length).toBe(before + 2)
    const batches = receiver.received.slice(before).map(({ text }) => JSON.parse(text).tool_calls)
    expect(batches).toMatchObject([
      [{ tool_input: { command: 'echo one' } }],
      [{ tool_input: { command: 'echo two' } }],
    ])
  })
})

describe('PermissionDenied', () => {
  test('is called for a call that a rule denies, instead of the hooks that follow a call, and may offer another try', async () => {
    const retry = { hookSpecificOutput: { hookEventName: 'PermissionDenied', retry: true } }
    const hooks = {
      ...noted('PostToolUse'),
      ...noted('PostToolUseFailure'),
      PermissionDenied: [
        { matcher: 'Bash', hooks: [{ type: 'command', command: `${NOTE}; echo '${JSON.stringify(retry)}'` }] },
      ],
    }
    const id = await stage.create({ hooks, permission_rules: { deny: ['Bash(echo one)'] } })
    await stage.say(id, 'run one')
    const [denied] = await afterHooks(id, 'PermissionDenied', 1)
    expect(denied).toMatchObject({ tool_name: 'Bash', tool_input: { command: 'echo one' } })
    expect(denied.reason).toContain('Bash(echo one)')
    expect(await stage.events(id, 'types=ToolResult')).toMatchObject([
      { error_type: 'denied', context: 'PermissionDenied hook: You may try this call again.' },
    ])
  })
})

test('PermissionDenied is not called for a call that a user denies', async () => {
  const id = await stage.create({
    hooks: { ...noted('PermissionDenied'), ...noted('Stop') },
    permission_mode: 'default',
    tools: ['FileEditor'],
  })
  await call('POST', id, '/messages', { message: { role: 'user', content: 'edit a.txt' }, run: true })
  const asked = () => requestsOf(server.call, id, 'permission')
  await until('the user is asked', async () => (await asked()).length === 1)
  const [request] = await asked()
  const denial = decisionsFor(request, { behavior: 'deny', message: 'not that' })
  expect((await call('POST', id, `/requests/${request.request_id}`, denial)).status).toBe(200)
  await afterHooks(id, 'Stop', 1)
  expect(await stage.events(id, 'types=ToolResult')).toMatchObject([{ is_error: true }])
})

test.each([
  ['a hook', { PreToolUse: [{ hooks: [{ type: 'command', command: 'echo not that >&2; exit 2' }] }] }, 'bypass'],
  ['the mode', {}, 'deny'],
])('PermissionDenied is called once for a call that %s denies', async (_, hooks, permission_mode) => {
  const id = await stage.create({
    hooks: { ...hooks, ...noted('PermissionDenied') },
    permission_mode,
    tools: ['FileEditor'],
  })
  await call('POST', id, '/messages', { message: { role: 'user', content: 'edit a.txt' }, run: true })
  await until('the end of the run', async () => (await call('GET', id)).body.status === 'idle')
  const said = await payloads(id)
  expect(said).toMatchObject([{ hook_event_name: 'PermissionDenied', reason: expect.any(String) }])
})

describe('StopFailure', () => {
  test('is called instead of Stop when a model request has failed, by its kind, and keeps nothing from ending', async () => {
    const id = await stage.create({ hooks: { ...noted('Stop'), ...noted('StopFailure', 'authentication_failed') } })
    await stage.say(id, 'fail')
    const [failed] = await afterHooks(id, 'StopFailure', 1)
    expect(failed).toMatchObject({
      error: 'authentication_failed',
      error_details: expect.stringContaining('no such key'),
    })
    expect((await call('GET', id)).body.status).toBe('error')

    const other = await stage.create({ hooks: noted('StopFailure', 'rate_limit') })
    await stage.say(other, 'fail')
    expect(await payloads(other)).toEqual([])
  })
})

describe('PostCompact', () => {
  test('is called after a compaction, with the summary', async () => {
    const id = await stage.create({ hooks: noted('PostCompact', 'manual') })
    for (const text of ['One. ', 'Two. ', 'Three. ', 'Four. ']) await stage.say(id, text.repeat(400))
    expect((await call('POST', id, '/compact', {})).status).toBe(200)
    const [compacted] = await afterHooks(id, 'PostCompact', 1)
    const [{ summary }] = await stage.events(id, 'types=Condensation')
    expect(compacted).toMatchObject({ trigger: 'manual', compact_summary: summary })
  })
})

describe('FileChanged', () => {
  test('is called for edits of the agent and of clients, with what happened to which file', async () => {
    const id = await stage.create({ hooks: noted('FileChanged', '\\.env$'), tools: ['FileEditor'] })
    const { workdir } = (await call('GET', id)).body
    await stage.say(id, 'edit by-agent.env')
    await afterHooks(id, 'FileChanged', 1)
    const route = `${server.url}/conversations/${id}/files/by-client.env`
    for (const [method, count] of [
      ['PUT', 2],
      ['PUT', 3],
      ['DELETE', 4],
    ] as const) {
      await send(method, route)
      await afterHooks(id, 'FileChanged', count)
    }
    await send('PUT', route.replace('.env', '.txt'))
    await send('PUT', route)
    const said = await afterHooks(id, 'FileChanged', 5)
    expect(said.map(({ file_path, event }) => [file_path, event])).toEqual([
      [join(workdir, 'by-agent.env'), 'add'],
      [join(workdir, 'by-client.env'), 'add'],
      [join(workdir, 'by-client.env'), 'change'],
      [join(workdir, 'by-client.env'), 'unlink'],
      [join(workdir, 'by-client.env'), 'add'],
    ])
  })

  const send = async (method: string, url: string) => {
    const write = method === 'PUT' && {
      body: 'x',
      headers: { ...AS_OWNER, 'content-type': 'application/octet-stream' },
    }
    const { ok } = await fetch(url, { method, headers: AS_OWNER, ...write })
    expect(ok).toBe(true)
  }

  /** At most 100 files at a time. */
  const upload = async (id: string, directories: readonly string[], count = 100) => {
    const body = new FormData()
    for (let at = 0; at < count; at++) body.append('file', new Blob(['x']), `${at}.txt`)
    const url = `${server.url}/conversations/${id}/files/upload`
    for (const path of directories) {
      const { status } = await fetch(`${url}?path=${path}`, { method: 'POST', headers: AS_OWNER, body })
      expect(status).toBe(201)
    }
  }
  const SLOW = { FileChanged: [{ hooks: [{ type: 'http', url: receiver.url }] }] }

  test('delays no hook that the agent waits for, and says how many changes of a large upload were dropped', async () => {
    const { promise: answered, resolve: answer } = Promise.withResolvers<number>()
    receiver.answer = () => answered
    const before = receiver.received.length
    const id = await stage.create({ hooks: { ...SLOW, ...noted('PreToolUse') } })
    await upload(id, ['a/', 'b/', 'c/'])
    await receiver.untilReceived((all) => all.length === before + 4)
    await stage.say(id, 'run one')
    expect(await payloads(id)).toMatchObject([{ hook_event_name: 'PreToolUse' }])
    expect(receiver.received.length).toBe(before + 4)

    answer(204)
    const called = async () => (await stage.events(id, 'types=HookEvent')).filter(isAt('FileChanged'))
    await until('all are called', async () => (await called()).length === 260)
    const losses = (await called()).filter(({ message }) => message !== undefined)
    expect(losses).toMatchObject([{ message: 'Of earlier calls, 40 were dropped: more than 256 waited.' }])
  })

  test('holds neither a deletion nor a stop of the server, and nothing that waited is called afterwards', async () => {
    receiver.answer = () => new Promise<never>(() => {})
    const before = receiver.received.length
    const [deleted, kept] = [await stage.create({ hooks: SLOW }), await stage.create({ hooks: SLOW })]
    for (const id of [deleted, kept]) await upload(id, ['a/'], 10)
    await receiver.untilReceived((all) => all.length === before + 8)
    expect((await call('DELETE', deleted)).status).toBe(204)
    expect((await call('GET', deleted)).status).toBe(410)
    await server.restart('SIGTERM')
    expect((await stage.events(kept, 'types=HookEvent')).length).toBe(0)
    expect(receiver.received.length).toBe(before + 8)
  })
})

describe('TaskCompleted', () => {
  test('is called for a run and for a command that are completed, once, also over a restart', async () => {
    const id = await stage.create({ hooks: noted('TaskCompleted') })
    const post = async (title: string, runnable: object) =>
      (await call('POST', id, '/tasks', { title, runnable })).body.id
    const run = await post('a run', { type: 'AgentRun', message: { role: 'user', content: 'hello' } })
    await afterHooks(id, 'TaskCompleted', 1)
    await server.restart('SIGKILL')
    const command = await post('a command', { type: 'Command', command: 'true' })
    const said = await afterHooks(id, 'TaskCompleted', 2)
    expect(said).toMatchObject([
      { task_id: run, task_subject: 'a run' },
      { task_id: command, task_subject: 'a command' },
    ])
  })
})

test('a URL and a client are called at these points as well', async () => {
  receiver.answer = () => 204
  const before = receiver.received.length
  const hooks = { PostToolBatch: [{ hooks: [{ type: 'http', url: receiver.url }] }] }
  const id = await stage.create({ hooks })
  const ofClient = { StopFailure: [{ hooks: [{ id: 'failures', timeout: 30 }] }] }
  expect((await call('PUT', id, '/client-hooks/watcher', { hooks: ofClient })).status).toBe(200)
  const stream = await subscribe(server.url, `/conversations/${id}/events/stream?types=Result&hook_client=watcher`)
  await stage.say(id, 'run one')
  expect(receiver.received.length - before).toBe(1)
  await call('POST', id, '/messages', { message: { role: 'user', content: 'fail' }, run: true })
  const asked = () => stream.frames.filter(({ event }) => event === 'HookRequest')
  await until('the client is asked', async () => asked().length === 1)
  const { request_id, payload } = asked()[0]!.data
  expect(payload).toMatchObject({ hook_event_name: 'StopFailure', error: 'authentication_failed' })
  expect((await call('POST', id, `/requests/${request_id}`, { kind: 'hook', output: {} })).status).toBe(200)
  await until('the run has failed', async () => (await call('GET', id)).body.status === 'error')
  stream.close()
})
