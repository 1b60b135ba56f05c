/** Replays: what the table says, what they may cost, and that they end, continue and leave nothing. */
import * as fs from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ForkConversation } from '../../src/contract/conversation.ts'
import { measureFork } from '../../src/replays/follow-fork.ts'
import { startScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import { call, eventsOf, MODEL_KEY, only, realShells, say, setBench, tool } from '../conversations/fixtures.ts'
import type { Bench, BenchOptions } from '../conversations/fixtures.ts'
import { asked, createReplays, pricedLlm, untilReplay } from './fixtures.ts'

const anyone = () => true
const USAGE = { prompt_tokens: 90, completion_tokens: 10 }

const write = tool('Write', (input, { workdir }) => {
  for (const [name, text] of Object.entries(input)) fs.writeFileSync(`${workdir}/${name}`, String(text))
  return { output: 'written' }
})

async function open(options: BenchOptions = {}) {
  const bench = await setBench({ script: () => ({ text: 'Hello.', usage: USAGE }), ...options })
  const replays = createReplays(bench)
  const converse = (fields: object = {}) => bench.converse({ llm_config: pricedLlm(bench), ...fields })
  return {
    bench,
    replays,
    converse,
    async [Symbol.asyncDispose]() {
      await replays.close()
      await bench[Symbol.asyncDispose]()
    },
  }
}

const modelsAsked = (bench: Bench) => new Set(bench.model.requests.map(({ body }) => body['model']))

test('a replay does the last task once more with each model, and its table says how each attempt ended', async () => {
  await using opened = await open({
    script: ({ messages }) =>
      messages.at(-1)?.role === 'tool'
        ? { text: 'Done.', usage: USAGE }
        : { calls: [call('Write', { a: '1\n2\n' })], usage: USAGE },
    tools: [write],
    deps: { createShells: realShells() },
  })
  const { bench, replays } = opened
  const original = await opened.converse({ file_checkpointing: true, permission_mode: 'bypass' })
  await say(original)
  const before = await eventsOf(original)
  const [message] = only(before, 'UserMessage')
  const posted = await replays.post(
    asked({
      conversation_ids: [original.id],
      llm_configs: [{}, { model: 'openai/another', input_cost_per_token: 1e-3, output_cost_per_token: 1e-3 }],
      repeat: 2,
      permission_mode: 'bypass',
      network: { mode: 'open' },
      check: { command: 'test "$(cat a)" = 1' },
      max_cost_usd: 10,
    }),
  )
  expect(posted).toMatchObject({ status: 'running', progress: { done: 0, total: 4 }, cost_usd: 0 })
  const done = await untilReplay(replays, posted)
  expect(done).toMatchObject({ status: 'completed', progress: { done: 4, total: 4 } })
  expect(done.cost_usd).toBeCloseTo(0.8)
  expect(done.rows.map(({ llm_config, attempt, model }) => [llm_config, attempt, model])).toEqual([
    [0, 1, 'scripted'],
    [0, 2, 'scripted'],
    [1, 1, 'openai/another'],
    [1, 2, 'openai/another'],
  ])
  for (const row of done.rows)
    expect(row).toMatchObject({
      from_conversation_id: original.id,
      at_seq: message!.seq,
      status: 'completed',
      outcome: 'completed',
      files: 'snapshot',
      steps: 2,
      input_tokens: 180,
      output_tokens: 20,
      cost_usd: expect.closeTo(0.2),
      duration_ms: expect.any(Number),
      changes: { files: 1, added: 2, removed: 0 },
      check: { status: 'exited', exit_code: 1 },
    })
  expect(modelsAsked(bench)).toEqual(new Set(['scripted', 'another']))
  expect(await eventsOf(original)).toEqual(before)
})

test('each check runs in a session that an agent could not have prepared, because its name is new', async () => {
  await using opened = await open({ deps: { createShells: realShells() } })
  const { bench, replays } = opened
  const original = await opened.converse()
  await say(original)
  const request = { conversation_ids: [original.id], repeat: 2, network: { mode: 'open' }, check: { command: 'true' } }
  const { rows } = await untilReplay(replays, await replays.post(asked({ ...request, max_cost_usd: 10 })))
  const sessions = await Promise.all(
    rows.map(async ({ conversation_id: id }) => {
      const { items } = await (await bench.manager.open(id)).exec.commands.list({ limit: 10 })
      return items.map(({ session_id }) => session_id)
    }),
  )
  expect(new Set(sessions.flat()).size).toBe(2)
})

test('forks of a replay are denied what needs an approval, and reach no network, client tool or other directory', async () => {
  let written = 0
  const touch = tool('Touch', () => ({ output: String(++written) }))
  await using opened = await open({
    script: ({ messages }) =>
      messages.at(-1)?.role === 'tool' ? { text: 'Done.', usage: USAGE } : { calls: [call('Touch')], usage: USAGE },
    tools: [touch],
  })
  const { bench, replays } = opened
  const original = await opened.converse({
    permission_mode: 'bypass',
    client_tools: [{ name: 'ask_me', description: 'Asks.', input_schema: { type: 'object' } }],
    mcp: {
      mcpServers: { wiki: { url: 'https://wiki.example.com/mcp', headers: { authorization: 'secret-of-mcp-4711' } } },
    },
  })

  await say(original)
  expect(written).toBe(1)
  const { rows } = await untilReplay(replays, await replays.post(asked({ conversation_ids: [original.id] })))
  expect(rows[0]).toMatchObject({ status: 'completed', steps: 2 })
  expect(written).toBe(1)
  const fork = await bench.manager.open(rows[0]!.conversation_id)
  const { settings } = fork.state
  expect(settings).toMatchObject({ permission_mode: 'deny', network: { mode: 'none' }, allow_unpriced: false })
  for (const name of ['client_tools', 'client_hooks', 'mcp', 'additional_directories'])
    expect(settings).not.toHaveProperty(name)
  expect(JSON.stringify(await bench.storage.conversation(fork.id).readSecrets())).not.toContain('secret-of-mcp-4711')
  const [result] = only(await eventsOf(fork), 'ToolResult').slice(-1)
  expect(result).toMatchObject({ error_type: 'denied' })
})

test('a fork has only the MCP servers that the replay names, with their credentials', async () => {
  await using opened = await open()
  const { bench, replays } = opened
  const server = (secret: string) => ({ url: 'http://127.0.0.1:9/mcp', headers: { authorization: secret } })
  const mcpServers = { wiki: server('secret-of-wiki-4711'), shop: server('secret-of-shop-4711') }
  const original = await opened.converse({ mcp: { mcpServers } })
  await original.post({ message: 'go', run: false })
  const request = asked({ conversation_ids: [original.id], mcp_servers: ['wiki', 'unknown'] })
  const { rows } = await untilReplay(replays, await replays.post(request))
  const fork = await bench.manager.open(rows[0]!.conversation_id)
  expect(Object.keys(fork.state.settings.mcp ?? {})).toEqual(['wiki'])
  const secrets = Object.values((await bench.storage.conversation(fork.id).readSecrets())['mcp'] ?? {})
  expect(secrets).toEqual(['secret-of-wiki-4711'])
})

test('all forks together spend max_cost_usd and not more than the answer that each has begun', async () => {
  let [asking, most] = [0, 0]
  const gate = Promise.withResolvers<void>()
  await using opened = await open({
    async script() {
      most = Math.max(most, ++asking)
      if (asking === 4) gate.resolve()
      await gate.promise
      asking--
      return { text: 'Hello.', usage: USAGE }
    },
  })
  const { replays } = opened
  const original = await opened.converse()
  await original.post({ message: 'go', run: false })
  const request = asked({ conversation_ids: [original.id], repeat: 6, max_cost_usd: 0.35 })
  const done = await untilReplay(replays, await replays.post(request))
  expect(most).toBe(4)
  expect(done.cost_usd).toBeCloseTo(0.4)
  expect(done.rows.map(({ status }) => status).toSorted()).toEqual([
    ...Array.from({ length: 4 }, () => 'completed'),
    ...Array.from({ length: 2 }, () => 'error'),
  ])
  expect(done.rows.find(({ status }) => status === 'error')?.message).toContain('max_cost_usd')
})

test('a fork that has spent its share ends, and one whose cost is not known does not begin', async () => {
  await using opened = await open({
    script: () => ({ calls: [call('Touch')], usage: USAGE }),
    tools: [tool('Touch', () => ({ output: 'touched' }))],
  })
  const { bench, replays } = opened
  const original = await opened.converse({ allow_unpriced: true })
  await original.post({ message: 'go', run: false })
  const llm_configs = [{}, { model: 'openai/of-unknown-price' }]
  const request = asked({ conversation_ids: [original.id], llm_configs, max_cost_usd: 0.5 })
  const { rows } = await untilReplay(replays, await replays.post(request))
  expect(rows[0]).toMatchObject({ outcome: 'budget_limit', status: 'completed' })
  expect(rows[0]!.cost_usd).toBeLessThan(0.7)
  expect(rows[1]).toMatchObject({ status: 'error', message: expect.stringContaining('of-unknown-price') })
  expect(modelsAsked(bench)).toEqual(new Set(['scripted']))
})

test('a fork that asks for an approval ends as waiting, and what it asks is in no list', async () => {
  await using opened = await open({
    script: () => ({ calls: [call('Touch')], usage: USAGE }),
    tools: [tool('Touch', () => ({ output: 'touched' }))],
  })
  const { bench, replays } = opened
  const original = await opened.converse()
  await original.post({ message: 'go', run: false })
  const request = asked({ conversation_ids: [original.id], permission_mode: 'prompt' })
  const { rows } = await untilReplay(replays, await replays.post(request))
  expect(rows[0]).toMatchObject({ outcome: 'waiting', status: 'completed' })
  const { items } = await bench.manager.requests({ limit: 100 })
  expect(items).toEqual([])
  const listed = await bench.manager.list({ sort: 'created_at', order: 'desc', limit: 100 })
  expect(listed.items.map(({ id }) => id)).toEqual([original.id])
  expect(bench.manager.count({}).count).toBe(1)
})

test('a model endpoint elsewhere gets no stored key, and what a row fails with is in the table', async () => {
  await using opened = await open()
  await using other = await startScriptedModel(() => ({ text: 'Hello.', usage: USAGE }))
  const { replays } = opened
  const original = await opened.converse()
  await original.post({ message: 'go', run: false })
  const elsewhere = { base_url: other.baseUrl, input_cost_per_token: 1e-3, output_cost_per_token: 1e-3 }
  const own = { ...elsewhere, api_key: 'sk-of-the-replay-4711' }
  const request = asked({ conversation_ids: [original.id], llm_configs: [elsewhere, own] })
  const { rows } = await untilReplay(replays, await replays.post(request))
  expect(rows[0]?.message).toContain('api_key')
  expect(JSON.stringify(other.requests)).not.toContain(MODEL_KEY)
  expect(other.requests.map(({ headers }) => headers.authorization)).toContain('Bearer sk-of-the-replay-4711')
  expect(JSON.stringify(rows)).not.toContain('4711')
})

test.each([{ kill: false }, { kill: true }])(
  'a replay continues after a restart, $kill, and its file has no key',
  async ({ kill }) => {
    let isHeld = true
    const asking = Promise.withResolvers<void>()
    await using opened = await open({
      script() {
        asking.resolve()
        return isHeld ? { hang: true, text: 'Hel' } : { text: 'Hello.', usage: USAGE }
      },
    })
    const { bench } = opened
    const original = await opened.converse()
    await original.post({ message: 'go', run: false })
    const llm_configs = [{ api_key: 'sk-of-the-replay-4711' }]
    const request = asked({ conversation_ids: [original.id], llm_configs, repeat: 6, max_cost_usd: 10 })
    const posted = await opened.replays.post(request)
    await asking.promise
    const path = join(bench.dataDir, 'replays', `${posted.id}.json`)
    expect(fs.readFileSync(path, 'utf8')).not.toContain('sk-of-the-replay-4711')
    await opened.replays.close()
    isHeld = false
    await bench.restart({ kill })
    const replays = createReplays(bench)
    await replays.start()
    expect(bench.manager.count({}).count).toBe(1)
    const done = await untilReplay(replays, posted)
    expect(done.rows.map(({ status, outcome }) => [status, outcome])).toEqual(
      Array.from({ length: 6 }, () => ['completed', 'completed']),
    )
    const keys = new Set(bench.model.requests.map(({ headers }) => headers.authorization))
    expect(keys).toEqual(new Set(['Bearer sk-of-the-replay-4711']))
    await replays.close()
  },
)

test('a replay that is cancelled ends its forks and begins no more', async () => {
  const asking = Promise.withResolvers<void>()
  await using opened = await open({
    script() {
      asking.resolve()
      return { hang: true, text: 'Hel' }
    },
  })
  const { bench, replays } = opened
  const original = await opened.converse()
  await original.post({ message: 'go', run: false })
  const posted = await replays.post(asked({ conversation_ids: [original.id], repeat: 9 }))
  await asking.promise
  const cancelled = await replays.cancel(posted.id, anyone)
  expect(cancelled.status).toBe('cancelled')
  expect(new Set(cancelled.rows.map(({ status }) => status))).toEqual(new Set(['cancelled']))
  for (const { conversation_id: id } of cancelled.rows)
    if (bench.manager.ownerOf(id)) expect((await bench.view(id)).status).not.toBe('running')
  expect(await replays.cancel(posted.id, anyone)).toEqual(cancelled)
})

test('forks are deleted after keep, and the table remains, also after a restart', async () => {
  await using opened = await open()
  const { bench } = opened
  const original = await opened.converse()
  await original.post({ message: 'go', run: false })
  const posted = await opened.replays.post(asked({ conversation_ids: [original.id], keep: 0 }))
  const done = await untilReplay(opened.replays, posted)
  const [{ conversation_id: fork }] = done.rows as [(typeof done.rows)[0]]
  await untilReplay(opened.replays, posted, () => bench.manager.ownerOf(fork) === undefined)
  await opened.replays.close()
  await bench.restart()
  const replays = createReplays(bench)
  await replays.start()
  expect(await replays.get(posted.id, anyone)).toEqual(done)
  expect((await replays.list({ limit: 1 }, anyone)).items).toHaveLength(1)
  await replays.close()
})

test('a plan that no key of the server decrypts ends its replay with what to do', async () => {
  const asking = Promise.withResolvers<void>()
  await using opened = await open({
    script() {
      asking.resolve()
      return { hang: true, text: 'Hel' }
    },
  })
  const { bench } = opened
  const original = await opened.converse()
  await original.post({ message: 'go', run: false })
  const posted = await opened.replays.post(asked({ conversation_ids: [original.id], repeat: 5 }))
  await asking.promise
  await opened.replays.close()
  await bench.restart({ secretKeys: ['another-key-of-these-tests'] })
  const replays = createReplays(bench)
  await replays.start()
  const { rows } = await untilReplay(replays, posted)
  expect(rows.map(({ status }) => status)).toEqual(Array.from({ length: 5 }, () => 'error'))
  expect(rows[0]?.message).toContain('key')
  await replays.close()
})

test('a replay begins at the message or event that it names', async () => {
  await using opened = await open()
  const { replays } = opened
  const original = await opened.converse()
  await say(original, 'one')
  await say(original, 'two')
  const [first, last] = only(await eventsOf(original), 'UserMessage')
  const startOf = async (at?: unknown) =>
    (await replays.post(asked({ conversation_ids: [original.id], at }))).rows.map(({ at_seq }) => at_seq)
  expect(await startOf()).toEqual([last!.seq])
  expect(await startOf('first_message')).toEqual([first!.seq])
  expect(await startOf(first!.seq)).toEqual([first!.seq])
  await expect(startOf(10_000)).rejects.toMatchObject({ code: 'cursor_ahead' })
  const empty = await opened.converse()
  await expect(replays.post(asked({ conversation_ids: [empty.id] }))).rejects.toMatchObject({ code: 'invalid_request' })
})

test('more than 100 forks, and no budget, are refused', () => {
  const conversation_ids = [crypto.randomUUID()]
  expect(() => asked({ conversation_ids, llm_configs: [{}, {}], repeat: 51 })).toThrow('100')
  expect(() => asked({ conversation_ids, max_cost_usd: undefined })).toThrow('max_cost_usd')
})

test('a fork of a replay has hooks that run a command, and none that would send its calls to a URL', async () => {
  await using opened = await open()
  const url = { type: 'http' as const, url: 'https://audit.example.com/hook' }
  const command = { type: 'command' as const, command: 'true' }
  const hooks = { PreToolUse: [{ hooks: [url, command] }, { hooks: [url] }], Stop: [{ hooks: [url] }] }
  const original = await opened.converse({ hooks })
  await original.post({ message: 'go', run: false })
  const posted = await opened.replays.post(asked({ conversation_ids: [original.id] }))
  await untilReplay(opened.replays, posted)
  const fork = await opened.bench.manager.open(posted.rows[0]!.conversation_id)
  expect(fork.state.settings.hooks).toEqual({ PreToolUse: [{ hooks: [expect.objectContaining(command)] }] })
})

test('the changes of a fork are those of all its runs', async () => {
  await using opened = await open({
    script: ({ messages }) => {
      const last = JSON.stringify(messages.at(-1))
      const name = /write (\w)/.exec(last)?.[1]
      return name === undefined
        ? { text: 'Done.', usage: USAGE }
        : { calls: [call('Write', { [name]: '1' })], usage: USAGE }
    },
    tools: [write],
    deps: { createShells: realShells() },
  })
  const original = await opened.converse({ file_checkpointing: true, permission_mode: 'bypass' })
  await say(original, 'write a')
  const { id } = await opened.bench.manager.fork(original.id, ForkConversation.parse({ workdir: 'copy' }))
  const fork = await opened.bench.manager.open(id)
  for (const name of ['b', 'c']) await say(fork, `write ${name}`)
  expect(await measureFork(fork, false)).toMatchObject({ changes: { files: 2, added: 2, removed: 0 } })
})
