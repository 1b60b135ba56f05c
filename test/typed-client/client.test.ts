/** The client against a real server and a scripted model. */
import { Readable } from 'node:stream'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { AgentServerError } from '../../src/client/request/agent-server-error.ts'
import type { AgentServerClient } from '../../src/client/client.ts'
import { createClient } from '../../src/client/client.ts'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { ASKS } from '../support/asked-question.ts'
import { KEY } from '../support/server.ts'
import type { OpenRequestOf } from '../../src/contract/request.ts'
import { decisionsIn } from '../support/answering.ts'

let stage: Stage
let client: AgentServerClient
beforeAll(async () => {
  const replies = [
    { when: 'add', turns: [bash('echo $((6*7))'), { text: 'It is 42.' }] },
    { when: 'remove', turns: [bash('rm -f old.txt'), bash('rm -f older.txt'), { text: 'Removed one.' }] },
    {
      when: 'both',
      turns: [
        { calls: ['one', 'two', 'three'].map((name) => bash(`touch ${name}`).calls[0]!) },
        { text: 'Made some.' },
      ],
    },
    { when: 'ask me', turns: [ASKS] },
    { turns: [{ text: 'Hello.' }] },
  ]
  stage = await setStage({ replies })
  client = createClient({ baseUrl: `${stage.server.url}/`, apiKey: KEY, maxRetries: 0 })
})
afterAll(() => stage[Symbol.asyncDispose]())

const create = async (fields: Parameters<typeof client.conversations.create>[0] = {}) => {
  const llm_config = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
  return client.conversation((await client.conversations.create({ llm_config, ...fields })).id)
}

test('a message with an id of the program is sent once, although each call has another idempotency key', async () => {
  const conversation = await create()
  const message = { message: 'Hello', client_message_id: 'greeting' }
  const first = await conversation.postMessage(message, { idempotencyKey: 'one' })
  expect(await conversation.postMessage({ ...message, run: true }, { idempotencyKey: 'two' })).toEqual(first)
  const events = await conversation.listEvents({ types: ['UserMessage'] }).all()
  expect(events).toMatchObject([{ id: first.event_id, client_message_id: 'greeting' }])
  const other = conversation.postMessage({ ...message, message: 'Bye' }, { idempotencyKey: 'three' })
  await expect(other).rejects.toMatchObject({ code: 'message_exists' })
})

test('sends a message, waits for the end of the run, and lists what happened', async () => {
  const conversation = await create({ title: 'sum' })
  const { status, result } = await conversation.sendAndWait('Please add six and seven.')
  expect({ status, text: result?.final_text }).toEqual({ status: 'idle', text: 'It is 42.' })

  const calls = await conversation.listEvents({ types: ['ToolUse', 'ToolResult'] }).all()
  expect(calls.map((event) => (event.type === 'ToolUse' ? event.name : event.output))).toEqual([
    'Bash',
    expect.objectContaining({ stdout: '42\n' }),
  ])
  expect(await conversation.wait()).toEqual({ status, result, run_id: result?.run_id })
  expect(await conversation.countEvents({ types: ['ToolUse'] })).toEqual({ count: 1 })
  expect((await conversation.get()).title).toBe('sum')
})

test('the end of the last run is that of one that was not taken back', async () => {
  const conversation = await create()
  const first = await conversation.sendAndWait('hello')
  const { last_seq: to_seq } = await conversation.get()
  await conversation.sendAndWait('Please add six and seven.')
  await conversation.rewind({ to_seq, last_seq: (await conversation.get()).last_seq })
  expect(await conversation.wait()).toEqual({ ...first, run_id: first.result?.run_id })
})

test('starts a run and waits for it', async () => {
  const conversation = await create({ initial_message: { role: 'user', content: 'hello' } })
  expect(await conversation.runAndWait()).toMatchObject({ status: 'idle', result: { final_text: 'Hello.' } })
  const outcome = await conversation.run({ wait: true, max_steps: 1 }).catch((error: unknown) => error)
  expect(outcome).toMatchObject({ result: {} })
})

test('waits until the agent asks, and then for the run of a message that another client writes instead', async () => {
  const conversation = await create({ tools: ['AskUserQuestion'], initial_message: 'ask me' })
  expect(await conversation.runAndWait()).toMatchObject({ status: 'waiting_for_input' })
  const others = createClient({ baseUrl: stage.server.url, apiKey: KEY }).conversation(conversation.id)
  expect(await others.sendAndWait('hello')).toMatchObject({ status: 'idle', result: { final_text: 'Hello.' } })
  expect(await conversation.wait()).toMatchObject({ status: 'idle', result: { stop_reason: 'completed' } })
  expect(await conversation.sendAndWait('ask me')).toMatchObject({ status: 'waiting_for_input' })
})

test('allows a call, denies the next one, and waits after each decision', async () => {
  const conversation = await create({ confirmation_mode: true })
  expect(await conversation.sendAndWait('remove the old files')).toMatchObject({ status: 'waiting_for_confirmation' })
  const [asked] = await conversation.requests.list({ kinds: ['permission'] }).all()
  await conversation.requests.allow(asked as OpenRequestOf<'permission'>)
  expect(await conversation.wait()).toMatchObject({ status: 'waiting_for_confirmation' })
  const { items } = await conversation.requests.list()
  await conversation.requests.deny(items[0] as OpenRequestOf<'permission'>, { message: 'Keep it.' })
  expect(await conversation.wait()).toMatchObject({ result: { final_text: 'Removed one.' } })
  const decisions = decisionsIn(await conversation.listEvents({ types: ['RequestAnswered'] }).all())
  expect(decisions.map(({ behavior, message }) => [behavior, message])).toEqual([
    ['allow', undefined],
    ['deny', 'Keep it.'],
  ])
})

test('allows what others have not decided, although they were faster with a part of it', async () => {
  const conversation = await create({ confirmation_mode: true })
  await conversation.sendAndWait('make both')
  const [shown] = await conversation.requests.list().all()
  const asked = shown as OpenRequestOf<'permission'>
  const [first] = asked.payload.tool_uses
  const denial = { tool_use_id: first!.tool_use_id, input_hash: first!.input_hash, behavior: 'deny' } as const
  await conversation.requests.answer(asked.request_id, { kind: 'permission', decisions: [denial] })
  // As it was shown before.
  expect(await conversation.requests.allow(asked)).toMatchObject({ pending: 0 })
  expect(await conversation.wait()).toMatchObject({ result: { final_text: 'Made some.' } })
  const decisions = decisionsIn(await conversation.listEvents({ types: ['RequestAnswered'] }).all())
  expect(decisions.map(({ behavior }) => behavior)).toEqual(['deny', 'allow', 'allow'])
  await expect(conversation.requests.deny(asked)).rejects.toMatchObject({ code: 'already_answered' })
})

test('lists all items page by page, or one page', async () => {
  const user_id = 'pages'
  const ids = []
  for (let i = 0; i < 5; i++) ids.unshift((await create({ user_id })).id)
  const list = client.conversations.list({ user_id, limit: 2 })
  expect((await Array.fromAsync(list)).map(({ id }) => id)).toEqual(ids)
  expect((await Array.fromAsync(list.pages())).map(({ items }) => items.length)).toEqual([2, 2, 1])
  const first = await list
  expect(first.items.map(({ id }) => id)).toEqual(ids.slice(0, 2))
  const second = await client.conversations.list({ user_id, limit: 2, page_id: first.next_page_id! })
  expect(second.items.map(({ id }) => id)).toEqual(ids.slice(2, 4))
})

test('writes, uploads, reads and deletes files, also as streams and with any name', async () => {
  const { files } = await create()
  const pieces = ['one\n', 'two\n'].map((text) => new TextEncoder().encode(text))
  await files.put('a b/ü#?.txt', ReadableStream.from(pieces))
  expect(await (await files.get('a b/ü#?.txt')).text()).toBe('one\ntwo\n')
  const part = await files.get('a b/ü#?.txt', { headers: { range: 'bytes=4-' } })
  expect([part.status, await part.text()]).toEqual([206, 'two\n'])
  const link = await files.link('a b/ü#?.txt')
  expect(await (await fetch(link)).text()).toBe('one\ntwo\n')
  expect((await fetch(link)).status).toBe(401)

  const uploaded = await files.upload([
    { name: 'x.txt', content: 'x' },
    { name: 'y.txt', content: new Blob(['yy']) },
  ])
  expect(uploaded.items.map(({ path, size }) => [path, size])).toEqual([
    ['x.txt', 1],
    ['y.txt', 2],
  ])
  expect((await files.list({ recursive: true }).all()).map(({ path }) => path)).toContain('a b/ü#?.txt')
  expect((await files.head('y.txt')).headers.get('content-length')).toBe('2')
  const archive = new Uint8Array(await (await files.archive()).arrayBuffer())
  expect([...archive.subarray(0, 2)]).toEqual([0x1f, 0x8b])
  await files.delete('x.txt')
  await expect(files.info('x.txt')).rejects.toMatchObject({ code: 'file_not_found', status: 404 })
})

test('runs commands, and reads the output of one in the background', async () => {
  const { commands } = await create()
  expect(await commands.run({ command: 'echo hello' })).toMatchObject({ stdout: 'hello\n', exit_code: 0 })
  const { command_id } = await commands.run({ command: 'for i in 1 2 3; do read x; echo $x; done', background: true })
  const output = Array.fromAsync(commands.output(command_id))
  for (const text of ['a\n', 'b\n', 'c\n']) await commands.writeInput(command_id, { text })
  expect((await output).join('')).toBe('a\nb\nc\n')
})

test('throws errors with the code, the status and the sentence of the server', async () => {
  const conversation = await create()
  await conversation.delete()
  const error = await conversation.get().catch((reason: unknown) => reason)
  expect(error).toBeInstanceOf(AgentServerError)
  expect(error).toMatchObject({ code: 'conversation_deleted', status: 410, message: expect.stringMatching(/deleted/) })
  await expect(client.conversations.create({ titel: 'x' } as object)).rejects.toMatchObject({
    code: 'invalid_request',
    details: { issues: [{ message: expect.stringContaining('did you mean title') }] },
  })
  const stranger = createClient({ baseUrl: stage.server.url, apiKey: 'wrong', maxRetries: 0 })
  await expect(stranger.conversations.list()).rejects.toMatchObject({ code: 'unauthorized', status: 401 })
})

test.each(['..', '.', ''])('a path parameter cannot lead to another route: %o', async (id) => {
  await expect(async () => client.conversation(id).delete()).rejects.toMatchObject({ code: 'invalid_argument' })
  await expect(async () => client.conversation('x').files.get(id)).rejects.toMatchObject({ code: 'invalid_argument' })
})

/** Programs without types can pass anything. `fetch` reports these as if the server could not be reached, with their values. */
test('what cannot be sent is a mistake of the program at once, and the error does not quote it', async () => {
  const { files } = await create()
  const { url } = stage.server
  const patient = (options: object) => createClient({ baseUrl: url, apiKey: KEY, ...options })
  const mistakes: (() => unknown)[] = [
    () => patient({ baseUrl: url.replace('//', '//user:hush@') }),
    () => patient({ baseUrl: `${url}/?hush` }),
    () => patient({ apiKey: 17 }),
    () => patient({ headers: { 'x-name': 'hush\nx' } }),
    () => patient({}).conversations.create({}, { idempotencyKey: 'hush\u20ac' }),
    () => patient({}).alive({ signal: new AbortController() as never }),
    () =>
      patient({})
        .firehose({ signal: new AbortController() as never })
        .next(),
    () => files.put('x', { text: 'hush' } as never),
    () => files.put('x', undefined as never),
    () => files.put('x', Readable.from('hush') as never),
    () => files.upload([{ name: 'x', content: new Blob(['hush']).stream() as never }]),
  ]
  for (const make of mistakes) {
    const error: unknown = await Promise.resolve()
      .then(make)
      .catch((reason: unknown) => reason)
    expect(error, String(make)).toMatchObject({
      code: 'invalid_argument',
      message: expect.not.stringContaining('hush'),
    })
  }
  await expect(files.info('x')).rejects.toMatchObject({ code: 'file_not_found' })
})

test('a header of the program replaces that of the client, whatever its case', async () => {
  const headers = { Authorization: `Bearer ${KEY}` }
  const another = createClient({ baseUrl: stage.server.url, apiKey: 'another-key', headers, maxRetries: 0 })
  expect(await another.info()).toEqual(await client.info())
})

test('a path outside of the workdir reaches the server, which refuses it', async () => {
  const { files } = await create()
  for (const path of ['../events', '../../x', 'a/../../events', '/etc/passwd'])
    await expect(files.get(path), path).rejects.toMatchObject({ code: 'unsafe_path' })
})

test('secrets, callbacks, tasks, keys and the server have methods that work', async () => {
  const { secrets, callbacks, tasks } = await create()
  expect((await secrets.put({ secrets: { TOKEN_A: 'a-long-value' } })).items).toEqual(['TOKEN_A'])
  await secrets.delete('TOKEN_A')
  expect(await secrets.list().all()).toEqual([])
  const callback = await callbacks.create({ url: 'https://example.com/hook', events: ['Result'] })
  expect(callback.secret).toMatch(/^whsec_/)
  expect(await callbacks.update(callback.id, { enabled: false })).toMatchObject({ enabled: false })
  expect((await callbacks.list()).items).toHaveLength(1)
  const task = await tasks.post({ title: 'list', runnable: { type: 'Command', command: 'ls' } })
  expect((await tasks.list().all()).map(({ id }) => id)).toEqual([task.id])
  const key = await client.keys.create({ name: 'reader', scopes: ['read'] })
  expect((await client.keys.list().all()).map(({ name }) => name)).toContain('reader')
  await client.keys.delete(key.id)
  expect(await client.ready()).toEqual({ status: 'ok' })
  expect((await client.info()).tools).toContain('Bash')
  expect(await client.metrics()).toContain('# TYPE')
  expect(await client.openapi()).toMatchObject({ openapi: '3.1.0' })
})
