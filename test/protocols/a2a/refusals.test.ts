/** What A2A refuses, in the form of each binding, and whose tasks a key reaches: a real server, and raw requests. */
import { TaskState } from '@a2a-js/sdk'
import { assert, asyncProperty, constantFrom, dictionary, jsonValue, oneof, record, string } from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { a2aClient, askedIn, say, sendRaw } from '../../support/a2a.ts'
import { bash, setStageHere } from '../../support/agent.ts'

const ORIGIN = 'https://app.example.com'
const stage = await setStageHere(
  ({ body: { messages } }) => {
    const said = JSON.stringify(messages.at(-1)?.content)
    if (said.includes('never stop')) return { text: 'and so on '.repeat(300), chunk_delay_ms: 60 }
    return messages.at(-1)?.role !== 'tool' && said.includes('touch') ? bash('touch mine') : { text: 'I have read it.' }
  },
  { OPENHANDS_PROTOCOLS: 'a2a', OPENHANDS_MAX_BODY_BYTES: '1000000', OPENHANDS_CORS_ORIGINS: ORIGIN },
)
afterAll(() => stage[Symbol.asyncDispose]())
const { server } = stage

beforeAll(async () => {
  const llm_config = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
  for (const name of ['default', 'other'])
    await server.call('PUT', `/profiles/${name}`, { tools: ['Bash'], llm_config })
})

const keyFor = async (fields: object): Promise<string> =>
  (await server.call('POST', '/keys', { name: 'a test', scopes: ['read', 'write'], ...fields })).body.key

type Options = NonNullable<Parameters<typeof sendRaw>[2]>

const rpc = (method: string, params?: unknown, options?: Options) =>
  sendRaw(`${server.url}/a2a`, { jsonrpc: '2.0', id: 7, method, params }, options)
const http = (path: string, body?: unknown, options?: Options) => sendRaw(`${server.url}/a2a/v1${path}`, body, options)
const get = (path: string, options?: Options) => http(path, undefined, { method: 'GET', ...options })

const hello = (more: object = {}) => ({
  message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text: 'Hello' }], ...more },
})

const infoOf = (reason: string) => [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason }]

/** What both bindings say about the same refusal. */
const asRpc = (code: number, reason: string, status = 200) => ({
  status,
  body: { jsonrpc: '2.0', error: { code, data: infoOf(reason) } },
})
const asHttp = (status: number, name: string, reason: string) => ({
  status,
  body: { error: { code: status, status: name, details: infoOf(reason) } },
})

test('the card is public, and names what each binding needs; all else needs a key', async () => {
  const { status, body } = await sendRaw(`${server.url}/.well-known/agent-card.json`, undefined, {
    key: '',
    version: '',
    method: 'GET',
  })
  expect(status).toBe(200)
  expect(body).toMatchObject({
    supportedInterfaces: [
      { url: `${server.url}/a2a`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
      { url: `${server.url}/a2a/v1`, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
    ],
    skills: [{ id: 'agent' }],
    securityRequirements: [{ schemes: { bearer: { list: [] } } }],
  })
  for (const key of ['', 'no-such-key']) {
    const refused = await rpc('GetTask', { id: 'x' }, { key })
    expect(refused).toMatchObject(asRpc(-32_000, 'UNAUTHORIZED', 401))
    expect(refused.headers.get('www-authenticate')).toContain('Bearer')
    expect(await get('/tasks/x', { key })).toMatchObject(asHttp(401, 'UNAUTHENTICATED', 'UNAUTHORIZED'))
  }
})

test('versions other than 1.x are refused, also a missing one, which means an older one', async () => {
  for (const version of ['', '0.3', '2.0', '1.x', '10']) {
    expect(await rpc('GetTask', { id: 'x' }, { version })).toMatchObject(asRpc(-32_009, 'VERSION_NOT_SUPPORTED'))
    const refused = asHttp(400, 'FAILED_PRECONDITION', 'VERSION_NOT_SUPPORTED')
    expect(await http('/message:send', hello(), { version })).toMatchObject(refused)
  }
  expect(await rpc('SendMessage', hello(), { version: '1.0.1' })).toMatchObject({ body: { result: { task: {} } } })
  const inQuery = await http('/message:send?A2A-Version=1.1', hello(), { version: '' })
  expect(inQuery).toMatchObject({ status: 200, body: { task: {} } })
})

test('pages of an allowed origin may send the version', async () => {
  const headers = {
    origin: ORIGIN,
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'a2a-version,authorization,content-type',
  }
  const preflight = await fetch(`${server.url}/a2a`, { method: 'OPTIONS', headers })
  expect(preflight.headers.get('access-control-allow-origin')).toBe(ORIGIN)
  expect(preflight.headers.get('access-control-allow-headers')).toContain('A2A-Version')
})

test('what is not a request of JSON-RPC has the codes of JSON-RPC', async () => {
  const send = (body: unknown) => sendRaw(`${server.url}/a2a`, body)
  expect(await send('{')).toMatchObject(asRpc(-32_700, 'PARSE_ERROR'))
  expect(await send('')).toMatchObject(asRpc(-32_700, 'PARSE_ERROR'))
  for (const wrong of [[], {}, 7, { jsonrpc: '2.0', method: 'GetTask' }, { jsonrpc: '1.0', id: 1, method: 'GetTask' }])
    expect(await send(wrong)).toMatchObject(asRpc(-32_600, 'INVALID_REQUEST'))
  for (const method of ['message/send', 'toString', ''])
    expect(await rpc(method)).toMatchObject({ ...asRpc(-32_601, 'METHOD_NOT_FOUND'), body: { id: 7 } })
})

test('what is not valid is refused by name before anything happens', async () => {
  const parts = (...some: unknown[]) => hello({ contextId: 'wrong', parts: some })
  const wrong: [unknown, RegExp][] = [
    [undefined, /message/],
    [{ message: 7 }, /message/],
    [hello({ contextId: 'wrong', messageId: '' }), /messageId/],
    [hello({ contextId: 'x'.repeat(201) }), /contextId/],
    [hello({ contextId: 'wrong', role: 'ROLE_AGENT' }), /role/],
    [parts(), /parts/],
    [parts({ text: ' ' }), /say something/],
    [parts({}), /without text/],
    [parts({ data: { request_id: 'x' } }), /request_id/],
    [parts({ data: { request_id: crypto.randomUUID(), kind: 'permission' } }), /decisions/],
    [parts({ data: { request_id: crypto.randomUUID(), kind: 'network', behavior: 'allow' } }), /taskId/],
    [{ ...hello({ contextId: 'wrong' }), metadata: { profile: 'no-such' } }, /profile/],
  ]
  for (const [params, message] of wrong) {
    const byRpc = await rpc('SendMessage', params)
    expect(byRpc, JSON.stringify(params)).toMatchObject(asRpc(-32_602, 'INVALID_PARAMS'))
    expect(byRpc.body.error.message).toMatch(message)
    for (const verb of ['send', 'stream']) {
      const refused = await http(`/message:${verb}`, params ?? {})
      expect(refused).toMatchObject(asHttp(400, 'INVALID_ARGUMENT', 'INVALID_PARAMS'))
    }
  }
  for (const part of [{ url: 'https://example.com/a.png' }, { raw: 'AAAA', mediaType: 'application/zip' }])
    expect(await rpc('SendMessage', parts(part))).toMatchObject(asRpc(-32_005, 'CONTENT_TYPE_NOT_SUPPORTED'))
  const { items } = (await server.call('GET', '/conversations?limit=200')).body
  expect(items.map(({ external_id }: { external_id?: string }) => external_id)).not.toContain('wrong')
})

test('a message that is too large, a busy context and an unknown task have the errors of both bindings', async () => {
  const large = hello({ parts: [{ text: 'x'.repeat(1_100_000) }] })
  expect(await rpc('SendMessage', large)).toMatchObject({ status: 413, body: { error: { code: -32_000 } } })
  expect(await http('/message:send', large)).toMatchObject({ status: 413, body: { error: { code: 413 } } })
  const client = await a2aClient(server.url)
  const { id, contextId } = await say(client, { text: 'never stop', now: true })
  for (const refused of [
    await rpc('SendMessage', hello({ contextId })),
    await http('/message:send', hello({ contextId })),
  ])
    expect(refused.headers.get('retry-after')).toBe('1')
  expect(await http('/message:send', hello({ contextId }))).toMatchObject(
    asHttp(409, 'ABORTED', 'CONVERSATION_RUNNING'),
  )
  expect(await http(`/tasks/${id}:cancel`)).toMatchObject({ status: 200 })
  expect(await http(`/tasks/${id}:cancel`)).toMatchObject(asHttp(400, 'FAILED_PRECONDITION', 'TASK_NOT_CANCELABLE'))
  const ended = asHttp(400, 'FAILED_PRECONDITION', 'UNSUPPORTED_OPERATION')
  expect(await http(`/tasks/${id}:subscribe`)).toMatchObject(ended)
  expect(await http('/message:send', hello({ taskId: id }))).toMatchObject(ended)
  const { metadata } = (await get(`/tasks/${id}`)).body
  for (const unknown of ['x', `${metadata.conversation_id}-1`, `${crypto.randomUUID()}-2`, '%00', '..%2F..']) {
    expect(await get(`/tasks/${unknown}`)).toMatchObject(asHttp(404, 'NOT_FOUND', 'TASK_NOT_FOUND'))
    expect(await http(`/tasks/${unknown}:cancel`)).toMatchObject(asHttp(404, 'NOT_FOUND', 'TASK_NOT_FOUND'))
    expect(await rpc('SubscribeToTask', { id: unknown })).toMatchObject(asRpc(-32_001, 'TASK_NOT_FOUND'))
  }
})

test('a key reaches the tasks of its user alone, and does what its scopes allow', async () => {
  const [ada, bob] = [await keyFor({ user_id: 'ada' }), await keyFor({ user_id: 'bob' })]
  const ofAda = await a2aClient(server.url, { key: ada })
  const task = await say(ofAda, { text: 'touch it', contextId: 'ours' })
  const missing = asRpc(-32_001, 'TASK_NOT_FOUND')
  for (const [method, params] of [
    ['GetTask', { id: task.id }],
    ['CancelTask', { id: task.id }],
    ['SubscribeToTask', { id: task.id }],
    ['SendMessage', hello({ taskId: task.id })],
  ] as const)
    expect(await rpc(method, params, { key: bob }), method).toMatchObject(missing)
  // The same name is another context, and the id of the conversation opens nothing.
  const ofBob = await a2aClient(server.url, { key: bob })
  const other = await say(ofBob, { text: 'Hello', contextId: 'ours' })
  expect(other.metadata?.['conversation_id']).not.toBe(task.metadata?.['conversation_id'])
  const { request_id, tool_uses } = askedIn(task)[0]
  const decisions = tool_uses.map(({ tool_use_id, input_hash }: Record<string, string>) => {
    return { tool_use_id, input_hash, behavior: 'allow' }
  })
  const approve = hello({ taskId: task.id, parts: [{ data: { request_id, kind: 'permission', decisions } }] })
  expect(await rpc('SendMessage', approve, { key: ada })).toMatchObject(asRpc(-32_000, 'FORBIDDEN', 403))
  const elsewhere = hello({ ...approve.message, taskId: other.id })
  expect(await rpc('SendMessage', elsewhere)).toMatchObject({ body: { error: { message: /has not asked/ } } })
  const reader = await keyFor({ scopes: ['read'], user_id: 'ada' })
  const forbidden = asRpc(-32_000, 'FORBIDDEN', 403)
  for (const method of ['SendMessage', 'SendStreamingMessage', 'CancelTask'])
    expect(await rpc(method, { id: task.id, ...hello() }, { key: reader })).toMatchObject(forbidden)
  expect(await http('/message:send', hello(), { key: reader })).toMatchObject(
    asHttp(403, 'PERMISSION_DENIED', 'FORBIDDEN'),
  )
  const writer = await keyFor({ scopes: ['write'], user_id: 'ada' })
  expect(await rpc('GetTask', { id: task.id }, { key: writer })).toMatchObject(forbidden)
  expect(await rpc('GetTask', { id: task.id }, { key: reader })).toMatchObject({
    body: { result: { status: { state: 'TASK_STATE_INPUT_REQUIRED' } } },
  })
  const limited = await keyFor({ profiles: ['other'] })
  const own = (await rpc('SendMessage', hello(), { key: limited })).body.result.task
  const { profile } = (await server.call('GET', `/conversations/${own.metadata.conversation_id}`)).body
  expect(profile).toBe('other')
  const toOther = { ...hello({ contextId: own.contextId }), metadata: { profile: 'default' } }
  expect(await rpc('SendMessage', toOther)).toMatchObject(asRpc(-32_000, 'CONVERSATION_EXISTS'))
  const notIts = { ...hello(), metadata: { profile: 'default' } }
  expect(await rpc('SendMessage', notIts, { key: limited })).toMatchObject(forbidden)
})

test('the binding of HTTP takes the media type of A2A', async () => {
  const sent = await http('/message:send', hello(), { type: 'application/a2a+json' })
  expect(sent).toMatchObject({ status: 200, body: { task: {} } })
  expect(await http('/message:send', hello(), { type: 'application/xml' })).toMatchObject(
    asHttp(415, 'FAILED_PRECONDITION', 'UNSUPPORTED_MEDIA_TYPE'),
  )
})

test('a list of tasks refuses a status that the protocol does not have, and names those that it has', async () => {
  const statuses = ['completed', 'TASK_STATE_COMPLETE', 'toString', 'TASK_STATE_WORKING ']
  for (const status of statuses) {
    const refused = await rpc('ListTasks', { status })
    expect(refused).toMatchObject(asRpc(-32_602, 'INVALID_PARAMS'))
    expect(refused.body.error.message).toMatch(/status.*TASK_STATE_WORKING.*TASK_STATE_COMPLETED/)
    expect(await get(`/tasks?status=${encodeURIComponent(status)}`)).toMatchObject(
      asHttp(400, 'INVALID_ARGUMENT', 'INVALID_PARAMS'),
    )
  }
  for (const status of ['TASK_STATE_REJECTED', 'TASK_STATE_AUTH_REQUIRED'])
    expect(await rpc('ListTasks', { status })).toMatchObject({ body: { result: { tasks: [] } } })
  for (const status of ['TASK_STATE_UNSPECIFIED', '', undefined])
    expect((await rpc('ListTasks', { status })).body.result.tasks.length).toBeGreaterThan(0)
})

test('a key that is limited to profiles decides, and adds no rule', async () => {
  const key = await keyFor({ profiles: ['other'], scopes: ['read', 'write', 'approve'] })
  const client = await a2aClient(server.url, { key })
  const task = await say(client, { text: 'touch it' })
  const { request_id, kind, tool_uses } = askedIn(task)[0]
  const answer = (more: object) => ({
    taskId: task.id,
    data: {
      request_id,
      kind,
      decisions: tool_uses.map(({ tool_use_id, input_hash }: Record<string, string>) => {
        return { tool_use_id, input_hash, behavior: 'allow', ...more }
      }),
    },
  })
  await expect(say(client, answer({ remember: true }))).rejects.toThrow(/limited to profiles and cannot add rules/)
  expect(await client.getTask({ tenant: '', id: task.id })).toEqual(task)
  expect((await say(client, answer({}))).status?.state).toBe(TaskState.TASK_STATE_COMPLETED)
})

const anything = jsonValue({ maxDepth: 3 })
const idLike = oneof(string(), constantFrom('ours', `${crypto.randomUUID()}-2`))
const partLike = record(
  { text: anything, data: anything, raw: oneof(string(), anything), mediaType: string() },
  { requiredKeys: [] },
)
const paramsLike = oneof(
  anything,
  record(
    {
      id: idLike,
      message: record(
        {
          messageId: idLike,
          contextId: idLike,
          taskId: idLike,
          role: constantFrom('ROLE_USER', 1),
          parts: oneof(
            anything,
            partLike.map((part) => [part]),
          ),
        },
        { requiredKeys: [] },
      ),
      configuration: oneof(anything, dictionary(constantFrom('historyLength', 'taskPushNotificationConfig'), anything)),
      metadata: anything,
    },
    { requiredKeys: [] },
  ),
)
const METHODS = [
  'SendMessage',
  'SendStreamingMessage',
  'GetTask',
  'CancelTask',
  'SubscribeToTask',
  'GetExtendedAgentCard',
]

test('property: no request is an error of the server', async () => {
  await assert(
    asyncProperty(constantFrom(...METHODS), paramsLike, async (method, params) => {
      const answers = [await rpc(method, params), await http('/message:send', params)]
      for (const { status, body } of answers) {
        expect(status).toBeLessThan(500)
        expect(JSON.stringify(body)).not.toContain('INTERNAL')
      }
    }),
    { numRuns: 150 },
  )
})
