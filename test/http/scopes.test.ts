/** What each key may do: every operation, asked with a key of every scope, of its own conversations and of others. */
import { execFileSync } from 'node:child_process'
import { afterAll, describe, expect, test } from 'vitest'
import type { CreateKey } from '../../src/contract/key.ts'
import { Scope } from '../../src/contract/key.ts'
import { REQUESTS, REQUEST_KINDS } from '../../src/contract/requests/request-kinds.ts'
import { scopedRoutes } from '../../src/http/guards/route-scopes.ts'
import { uuid7 } from '../../src/lib/uuid7.ts'
import { realShells } from '../conversations/fixtures.ts'
import { connectAs } from '../support/socket.ts'
import type { Answer } from './fixtures.ts'
import { setHttp } from './fixtures.ts'
import type { Case } from './operations.ts'
import { isPublic, operations, pathOf, validBody, validHeaders, validQuery } from './operations.ts'

const http = await setHttp({ deps: { createShells: realShells() } })
const url = await http.listen()
afterAll(() => http[Symbol.asyncDispose]())

const LLM = { llm_config: { model: 'scripted', base_url: http.bench.model.baseUrl, api_key: 'the-key-of-a-model' } }
const MINE = { user_id: 'user-17' }
const THEIRS = { user_id: 'user-18' }
const LIMITED = Scope.options.filter((scope) => scope !== 'admin')
const foreign = await http.create(THEIRS)

async function keyFor(scopes: Scope[], limits: Partial<CreateKey> = MINE): Promise<Record<string, string>> {
  const { status, body, text } = await http.call('POST', '/keys', { name: 'a test', scopes, ...limits })
  expect(status, text).toBe(201)
  return { authorization: `Bearer ${body.key}` }
}

/** A stream would go on for ever: what it is asked is wrong, and it is said so to those who may ask. */
const queryOf = (one: Case) =>
  /stream|firehose/i.test(one.operation.operationId) ? '?no_such_parameter=1' : validQuery(one)

function ask(one: Case, id: string, key: Record<string, string>): Promise<Answer> {
  const body = one.operation.operationId === 'createStreamTicket' ? { conversation_id: id } : bodyOf(one)
  return http.call(one.method, pathOf(one, id) + queryOf(one), body, { accept: '*/*', ...validHeaders(one), ...key })
}

/** Its example chooses fields that need more than the scope of the route. */
const bodyOf = (one: Case) =>
  ['createConversation', 'updateConfig', 'runConversation'].includes(one.operation.operationId) ? {} : validBody(one)

/** The answer of its example is a decision about a permission. */
const neededFor = ({ operation }: Case): Scope[] =>
  operation.operationId === 'answerRequest' ? ['approve'] : (operation['x-required-scopes'] ?? [])

const withoutId = ({ status, body }: Answer, id: string) => ({
  status,
  body: JSON.parse(JSON.stringify(body).replaceAll(id, 'ID')) as unknown,
})

const protectedOnes = operations.filter((one) => !isPublic(one)).map((one): [string, Case] => [one.name, one])
const ofConversation = protectedOnes.filter(([, { path }]) => path.includes('/conversations/{id}'))

test('every operation says which scope it needs, and every scope in the table is of a route', () => {
  expect(protectedOnes.flatMap(([name, one]) => (neededFor(one).length === 0 ? name : []))).toEqual([
    'GET /me',
    'GET /logins',
    'DELETE /logins/{login_id}',
    'POST /login-codes',
  ])
  const known = new Set([
    ...operations.map(
      ({ method, path }) => `${method} ${path.replaceAll(/\{path\}/g, '*').replaceAll(/\{(\w+)\}/g, ':$1')}`,
    ),
    'GET /conversations/:id/ws',
    'GET /conversations/ws',
  ])
  expect([...scopedRoutes()].filter((route) => !known.has(route))).toEqual([])
})

const keysSoFar = new Map<string, Promise<Record<string, string>>>()

/** A key with the scopes of an operation, limited to the user. */
function keyWith(one: Case): Promise<Record<string, string>> {
  const scopes = neededFor(one).filter((scope) => scope !== 'admin')
  const key = keysSoFar.get(scopes.join()) ?? keyFor(scopes)
  keysSoFar.set(scopes.join(), key)
  return key
}

/** What changes nothing can be asked of the same conversation, one after the other. */
const isReading = ({ method }: Case) => method === 'GET' || method === 'HEAD'
const keys = new Map<Scope, Record<string, string>>()
for (const scope of LIMITED) keys.set(scope, await keyFor([scope]))
const headOf = async (id: string) => (await http.call('GET', `/conversations/${id}`)).body.last_seq as number
const foreignHead = await headOf(foreign)

/** The scope of an answer depends on the body, which is read after the conversation was found. */
const byRoute = protectedOnes.filter(
  ([, one]) => neededFor(one).length > 0 && one.operation.operationId !== 'answerRequest',
)

describe('without the scope it is 403, for every conversation', () => {
  test.each(byRoute)('%s', async (_, one) => {
    const needed = neededFor(one)
    const lacking = [...keys].filter(([scope]) => needed.some((each) => each !== scope))
    for (const [at, [scope, key]] of lacking.entries()) {
      const missing_scopes = needed.filter((each) => each !== scope)
      // One of them asks for a conversation that does not exist, too.
      for (const id of at === 0 ? [foreign, uuid7()] : [foreign]) {
        const answer = await ask(one, id, key)
        expect(answer.status, `${scope}: ${answer.text}`).toBe(403)
        if (one.method !== 'HEAD')
          expect(answer.body).toMatchObject({ error: 'forbidden', details: { missing_scopes } })
      }
    }
  })
})

describe('with the scope, a conversation of another user is reported as nonexistent:', () => {
  const none = uuid7()
  test.each(ofConversation)('%s', async (_, one) => {
    const key = await keyWith(one)
    const [ofOther, ofNobody] = [await ask(one, foreign, key), await ask(one, none, key)]
    expect(ofOther.status).toBe(404)
    if (one.method !== 'HEAD') expect(withoutId(ofOther, foreign)).toEqual(withoutId(ofNobody, none))
    expect(ofOther.headers).toEqual({
      ...ofNobody.headers,
      'x-request-id': ofOther.headers['x-request-id'],
      date: ofOther.headers['date'],
    })
  })

  test('the refused requests have changed nothing of it', async () => {
    expect(await headOf(foreign)).toBe(foreignHead)
  })
})

describe('with the scope, a conversation of the key’s user is accessible:', () => {
  const read = http.create(MINE)
  test.each(ofConversation)('%s', async (_, one) => {
    const own = await (isReading(one) ? read : http.create(MINE))
    const answer = await ask(one, own, await keyWith(one))
    expect([401, 403]).not.toContain(answer.status)
    expect(answer.body?.error).not.toBe('conversation_not_found')
    expect(answer.status).toBeLessThan(500)
  })
})

describe('a client that chooses the receiver of what a conversation says needs the scope read, too:', () => {
  const URL_HOOK = { Stop: [{ hooks: [{ type: 'http', url: 'https://example.org/hook' }] }] }
  const mcpOf = (mcp: object) => ({ mcp })
  const RECEIVERS: readonly [string, object][] = [
    ['the address of the model', { llm_config: { base_url: 'https://example.org/v1' } }],
    ['hooks with a URL', { hooks: URL_HOOK }],
    ['a named MCP server', mcpOf({ mcpServers: { a: { url: 'https://example.org' } } })],
    ['an MCP server in a list', mcpOf({ shttp_servers: [{ url: 'https://example.org' }] })],
    ['an older MCP server', mcpOf({ sse_servers: [{ url: 'https://example.org' }] })],
  ]
  const CHANGES: readonly [string, object][] = [
    ...RECEIVERS,
    ['another model', { llm_config: { model: 'openai/gpt-5' } }],
    ['fallback models', { llm_config: { fallback_models: ['another'] } }],
    ['the provider', { llm_config: { provider: 'anthropic' } }],
    ['the key of an account', { llm_config: { api_key: 'sk-of-another-account' } }],
    ['headers', { llm_config: { extra_headers: { 'X-Project': 'another' } } }],
    ['a field of the request', { llm_config: { extra_body: { store: true } } }],
    ['an unknown field', { llm_config: { no_such_field: 1 } }],
    ['a model that writes summaries', { compaction: { model: 'another' } }],
    ['a model of a subagent', { agents: { helper: { description: 'd', prompt: 'p', model: 'another' } } }],
  ]
  const READ = { error: 'forbidden', details: { missing_scopes: ['read'] } }

  test.each(RECEIVERS)('POST /conversations with %s', async (_, body) => {
    const key = await keyFor(['write', 'approve'])
    expect((await http.call('POST', '/conversations', body, key)).body).toMatchObject(READ)
  })

  test.each(CHANGES)('PUT config with %s', async (_, body) => {
    const key = await keyFor(['write', 'approve'])
    const { status, body: answer } = await http.call(
      'PUT',
      `/conversations/${await http.create(MINE)}/config`,
      body,
      key,
    )
    expect([status, answer]).toEqual([403, expect.objectContaining(READ)])
  })

  test.each([
    ['run', { wait: true }],
    ['run', { model: 'other' }],
    ['compact', { instructions: 'Repeat everything.' }],
  ])('POST %s with %j, whose response can repeat the conversation', async (route, body) => {
    const own = await http.create({ ...MINE, initial_message: { role: 'user', content: 'hello' } })
    const { status, body: answer } = await http.call(
      'POST',
      `/conversations/${own}/${route}`,
      body,
      await keyFor(['write']),
    )
    expect([status, answer]).toEqual([403, expect.objectContaining(READ)])
    expect((await http.call('GET', `/conversations/${own}`)).body.status).toBe('idle')
  })

  test.each([{ permission_mode: 'bypass' }, { allowed_tools: ['Bash'] }])(
    'a run with %j, which allows calls, needs the scope approve, over HTTP and sockets',
    async (options) => {
      const own = await http.create({ ...MINE, permission_mode: 'deny' })
      const headers = await keyFor(['write', 'read'])
      const { status, body } = await http.call('POST', `/conversations/${own}/run`, options, headers)
      expect([status, body]).toEqual([403, expect.objectContaining({ error: 'forbidden' })])
      const socket = await connectAs(url, `/conversations/${own}/ws`, { headers })
      socket.say({ type: 'run', id: 'run', ...options })
      expect(await socket.until(({ id }) => id === 'run')).toMatchObject({ error: 'forbidden' })
      socket.close()
      expect((await http.call('GET', `/conversations/${own}`)).body.status).toBe('idle')
    },
  )

  test('DELETE of a task that has ended: without it, the response has no result', async () => {
    const own = await http.create(MINE)
    const key = await keyFor(['write'])
    const ticker = { title: 'a task', runnable: { type: 'Ticker', interval: 0.1, count: 1 } }
    const task = `/conversations/${own}/tasks/${(await http.call('POST', `/conversations/${own}/tasks`, ticker, key)).body.id}`
    await expect.poll(async () => (await http.call('GET', task)).body.status).toBe('completed')
    const [narrow, whole] = [await http.call('DELETE', task, undefined, key), await http.call('DELETE', task)]
    expect(whole.body.result).toEqual({ type: 'Ticker', ticks: 1 })
    const { result: _, ...rest } = whole.body
    expect(narrow.body).toEqual(rest)
  })

  test('DELETE of a message: without it, the response has no message', async () => {
    const own = await http.create(MINE)
    const key = await keyFor(['write'])
    const { event_id } = (await http.call('POST', `/conversations/${own}/messages`, { message: 'not this' })).body
    const path = `/conversations/${own}/messages/${event_id}`
    expect((await http.call('DELETE', path, undefined, await keyFor(['read']))).status).toBe(403)
    const [narrow, whole] = [await http.call('DELETE', path, undefined, key), await http.call('DELETE', path)]
    const message = { role: 'user', content: [{ type: 'text', text: 'not this' }] }
    expect([narrow.body, whole.body]).toEqual([
      { event_id, seq: 3 },
      { event_id, seq: 3, message },
    ])
  })

  test('changes of how the model is asked do not need it', async () => {
    const llm_config = { temperature: 0.5, max_output_tokens: 100, timeout: 60, base_url: null }
    const config = `/conversations/${await http.create(MINE)}/config`
    expect((await http.call('PUT', config, { llm_config }, await keyFor(['write']))).status).toBe(200)
    const whole = await keyFor(['write', 'read'])
    expect((await http.call('PUT', config, { llm_config: { model: 'another' } }, whole)).status).toBe(200)
  })
})

describe('an admin key may do all that the master key may:', () => {
  const [read, key] = [http.create(), keyFor(['admin'], {})]
  test.each(protectedOnes)('%s', async (_, one) => {
    const isOfConversation = one.path.includes('{id}') || one.operation.operationId === 'createStreamTicket'
    const own = await (isReading(one) || !isOfConversation ? read : http.create())
    const answer = await ask(one, own, await key)
    expect([401, 403], answer.text).not.toContain(answer.status)
    expect(answer.status).toBeLessThan(500)
  })
})

describe('a key limited to a user', () => {
  test('lists and counts the conversations of that user only, whatever the filter', async () => {
    const key = await keyFor(['read'], { user_id: 'user-lists' })
    const found = { labels: ['shared'], metadata: { ticket: 17 } }
    const own = await http.create({ user_id: 'user-lists', ...found })
    await http.create({ ...THEIRS, ...found })
    for (const query of [
      '',
      '?label=shared',
      '?metadata=ticket=17',
      '?limit=1',
      '?status=idle',
      '?q=',
      `?created_after=2020-01-01T00:00:00Z`,
    ]) {
      const { body } = await http.call('GET', `/conversations${query.replace(/\?q=$/, '')}`, undefined, key)
      expect(body.items.map(({ id }: { id: string }) => id)).toEqual([own])
      expect(body.next_page_id).toBeNull()
    }
    for (const query of ['', '?status=idle', '?label=shared', '?metadata=ticket%3D17']) {
      expect((await http.call('GET', `/conversations/count${query}`, undefined, key)).body).toEqual({ count: 1 })
    }
    const { body } = await http.call('GET', '/conversations?user_id=user-18', undefined, key)
    expect(body.items).toEqual([])
  })

  test('creates for that user, and for no other', async () => {
    const key = await keyFor(['write', 'read'])
    const made = await http.call('POST', '/conversations', LLM, key)
    expect(made.body).toMatchObject(MINE)
    expect((await http.call('POST', '/conversations', { ...LLM, ...MINE }, key)).status).toBe(201)
    for (const refused of [
      THEIRS,
      { workdir: foreign },
      { additional_directories: ['/srv'] },
      { secrets: { A_SECRET: 'value-of-a-secret' } },
    ]) {
      expect((await http.call('POST', '/conversations', { ...LLM, ...refused }, key)).body.error).toBe('forbidden')
    }
    const config = `/conversations/${made.body.id}/config`
    expect((await http.call('PUT', config, { workdir: foreign }, key)).body.error).toBe('forbidden')
    const fork = await http.call('POST', `/conversations/${made.body.id}/fork`, {}, key)
    expect(fork.body).toMatchObject(MINE)
  })

  test('needs the scope approve to change what decides about calls and hosts', async () => {
    const own = await http.create(MINE)
    for (const update of [{ permission_mode: 'bypass' }, { network: { mode: 'open' } }, { hooks: {} }]) {
      const put = async (scopes: Scope[]) =>
        (await http.call('PUT', `/conversations/${own}/config`, update, await keyFor(scopes))).status
      expect([await put(['write']), await put(['write', 'approve'])], JSON.stringify(update)).toEqual([403, 200])
    }
  })

  test.each([
    { env: { GIT_SSH_COMMAND: 'any' } },
    { mcp: {} },
    { additional_directories: ['/srv'] },
    { workdir: 'another' },
  ])('without a user needs the scope approve, too, to change what an approval is about: %j', async (update) => {
    const own = await http.create()
    const put = async (scopes: Scope[]) =>
      (await http.call('PUT', `/conversations/${own}/config`, update, await keyFor(scopes, {}))).status
    expect([await put(['write']), await put(['write', 'approve'])]).toEqual([403, 200])
  })

  test.each([
    'GIT_EXTERNAL_DIFF',
    'RIPGREP_CONFIG_PATH',
    'PAGER',
    'npm_config_script_shell',
    'NODE_OPTIONS',
    'OPENSSL_CONF',
  ])('needs the scope approve for a secret that changes what programs do: %s', async (name) => {
    const own = await http.create()
    const put = async (scopes: Scope[], secret: string) => {
      const body = { secrets: { [secret]: 'touch-a-file' } }
      return (await http.call('PUT', `/conversations/${own}/secrets`, body, await keyFor(scopes, {}))).status
    }
    expect([await put(['secrets'], name), await put(['secrets', 'approve'], name)]).toEqual([403, 200])
    for (const credential of ['GITHUB_TOKEN', 'GIT_PASSWORD', 'NODE_AUTH_TOKEN', 'DB_URL', 'GOOGLE_API_KEY'])
      expect(await put(['secrets'], credential), credential).toBe(200)
  })

  test('neither gets what another user has made with the same Idempotency-Key, nor learns of it', async () => {
    const header = { 'idempotency-key': 'the-same-key' }
    const [mine, theirs] = [await keyFor(['write', 'read']), await keyFor(['write', 'read'], THEIRS)]
    const first = await http.call('POST', '/conversations', LLM, { ...theirs, ...header })
    const other = await http.call('POST', '/conversations', LLM, { ...mine, ...header })
    expect([first.status, other.status]).toEqual([201, 201])
    expect(other.body).toMatchObject(MINE)
    expect(other.body.id).not.toBe(first.body.id)
    const again = await http.call('POST', '/conversations', LLM, { ...mine, ...header })
    expect(again.body.id).toBe(other.body.id)
    const different = await http.call('POST', '/conversations', { ...LLM, title: 'another' }, { ...mine, ...header })
    expect(different.body.error).toBe('idempotency_mismatch')
  })

  test('is not confused with a user whose id differs only in characters that UTF-8 cannot encode', async () => {
    const ask = async (user_id: string) => {
      const key = await keyFor(['write', 'read'], { user_id })
      const made = await http.call('POST', '/conversations', LLM, { ...key, 'idempotency-key': 'surrogates' })
      return made.body.id as string
    }
    expect(await ask('\ud800')).not.toBe(await ask('\ud801'))
  })

  test('learns that an id is taken, and not whether its conversation was deleted', async () => {
    const [deleted, existing] = [await http.create(THEIRS), await http.create(THEIRS)]
    await http.call('DELETE', `/conversations/${deleted}`)
    const key = await keyFor(['write', 'read'])
    const answers = [deleted, existing].map((id) => http.call('POST', '/conversations', { ...LLM, id }, key))
    const [ofDeleted, ofExisting] = await Promise.all(answers)
    expect(ofDeleted).toMatchObject({ status: 409, body: { error: 'conversation_exists' } })
    expect(ofExisting!.body).toEqual(ofDeleted!.body)
  })

  test('gets the same response for a deleted conversation as for a nonexistent one', async () => {
    const key = await keyFor(['read', 'write'])
    const own = await http.create(MINE)
    expect((await http.call('DELETE', `/conversations/${own}`, undefined, key)).status).toBe(204)
    expect((await http.call('GET', `/conversations/${own}`, undefined, key)).status).toBe(404)
    expect((await http.call('GET', `/conversations/${own}`)).status).toBe(410)
  })

  test('needs the scope commands to post a task that is a command', async () => {
    const own = await http.create(MINE)
    const command = { title: 'a task', runnable: { type: 'Command', command: 'true' } }
    const post = async (scopes: Scope[]) =>
      (await http.call('POST', `/conversations/${own}/tasks`, command, await keyFor(scopes))).status
    expect([await post(['write']), await post(['write', 'commands'])]).toEqual([403, 201])
  })
})

test('a key limited to conversations reaches these only, and creates none', async () => {
  const [one, other] = [await http.create(), await http.create()]
  const key = await keyFor(['read', 'write'], { conversations: [one] })
  expect((await http.call('GET', `/conversations/${one.toUpperCase()}`, undefined, key)).status).toBe(200)
  expect((await http.call('GET', `/conversations/${other}`, undefined, key)).status).toBe(404)
  const { body } = await http.call('GET', '/conversations', undefined, key)
  expect(body.items.map(({ id }: { id: string }) => id)).toEqual([one])
  for (const path of ['/conversations', `/conversations/${one}/fork`]) {
    expect((await http.call('POST', path, {}, key)).body.error).toBe('forbidden')
  }
})

test('a fork with another model needs the scope read, and without it its answer names no files', async () => {
  const id = await http.create({ initial_message: 'Hello.' })
  const fork = async (scopes: Scope[], body: object) =>
    await http.call('POST', `/conversations/${id}/fork`, body, await keyFor(scopes, {}))
  for (const llm_config of [{ model: 'openai/another' }, { base_url: 'https://models.example' }]) {
    expect((await fork(['write'], { llm_config })).body.error).toBe('forbidden')
    expect((await fork(['write', 'read'], { llm_config })).status).toBe(201)
  }
  expect((await fork(['read'], { run: true })).body.error).toBe('forbidden')
  const run = await fork(['write'], { run: true })
  expect(run).toMatchObject({ status: 201, body: { run_id: expect.any(String), files: { from: 'now' } } })
  expect(run.body.files).not.toHaveProperty('left_out')
  // A pipe is not copied.
  execFileSync('mkfifo', [`${(await http.call('GET', `/conversations/${id}`)).body.workdir}/private-name`])
  expect((await fork(['write'], {})).text).not.toContain('private-name')
  expect((await fork(['write', 'read'], {})).text).toContain('private-name')
})

test('an admin key cannot be limited', async () => {
  const answer = await http.call('POST', '/keys', { name: 'a test', scopes: ['admin'], ...MINE })
  expect(answer.body).toMatchObject({ error: 'invalid_request', details: { issues: [{ path: 'body.scopes' }] } })
})

test('each key can ask what it allows, without a scope for it', async () => {
  const me = async (key?: Record<string, string>) => (await http.call('GET', '/me', undefined, key)).body
  expect(await me()).toEqual({ kind: 'master', scopes: Scope.options })
  expect(await me(await keyFor(['commands', 'approve']))).toEqual({
    kind: 'api_key',
    key_id: expect.any(String),
    name: 'a test',
    scopes: ['approve', 'commands'],
    ...MINE,
  })
  expect(await me(await keyFor(['read'], { conversations: [foreign] }))).toMatchObject({ conversations: [foreign] })
  expect(await me(await keyFor(['admin'], {}))).toMatchObject({ kind: 'api_key', scopes: Scope.options })
})

test('a key is made, shown, rotated and revoked over the API, and the log says which key asked', async () => {
  const made = await http.call('POST', '/keys', { name: 'nightly', scopes: ['read'] })
  const { key, id } = made.body as { key: string; id: string }
  const as = (secret: string) => http.call('GET', '/info', undefined, { authorization: `Bearer ${secret}` })
  expect([(await as(key)).status, made.headers['location']]).toEqual([200, `/keys/${id}`])
  expect((await http.call('GET', `/keys/${id}`)).body).toMatchObject({
    name: 'nightly',
    last_used_at: expect.any(String),
  })
  const rotated = (await http.call('POST', `/keys/${id}/rotate`)).body.key as string
  expect([(await as(key)).status, (await as(rotated)).status]).toEqual([200, 200])
  const { body } = await http.call('GET', '/keys')
  expect(JSON.stringify(body)).not.toMatch(/ask_[\w-]{10}/)
  expect((await http.call('DELETE', `/keys/${id}`)).status).toBe(204)
  for (const secret of [key, rotated]) expect((await as(secret)).status).toBe(401)
  expect((await http.call('GET', `/keys/${id}`)).body.error).toBe('key_not_found')
  const lines = http.bench.logged.map((line) => JSON.parse(line) as { key_id?: string; key_name?: string })
  expect(lines.find(({ key_id }) => key_id === id)).toMatchObject({ key_name: 'nightly' })
  expect(http.bench.logged.join()).not.toContain(key.slice(8))
})

describe('an answer needs the scope of its kind, over HTTP and sockets, and changes nothing without it:', () => {
  const CASES = REQUEST_KINDS.flatMap((kind) => LIMITED.map((scope) => [kind, scope] as const))

  test.each(CASES)('%s with %s', async (kind, scope) => {
    const own = await http.create(MINE)
    const answer = { kind, ...REQUESTS[kind].example }
    const key = keys.get(scope)!
    const { status, body } = await http.call('POST', `/conversations/${own}/requests/${uuid7()}`, answer, key)
    const isAllowed = REQUESTS[kind].scope === scope
    expect([status, body.error]).toEqual(isAllowed ? [404, 'request_not_found'] : [403, 'forbidden'])
    if (!isAllowed) expect(body.details.missing_scopes).toEqual([REQUESTS[kind].scope])
    const reader = await keyFor(['read', scope])
    const socket = await connectAs(url, `/conversations/${own}/ws`, { headers: reader })
    socket.say({ type: 'answer', request_id: uuid7(), answer })
    const { error } = await socket.until(({ type }) => type === 'problem')
    socket.close()
    expect(error).toBe(isAllowed ? 'request_not_found' : 'forbidden')
    expect(await headOf(own)).toBe(1)
    for (const id of [foreign, uuid7()]) {
      const elsewhere = await http.call('POST', `/conversations/${id}/requests/${uuid7()}`, answer, key)
      expect(elsewhere.body.error).toBe('conversation_not_found')
    }
  })
})
