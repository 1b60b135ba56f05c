/** The Conversations API, as the client of OpenAI uses it, on a real server. */
import OpenAI from 'openai'
import type { ConversationItem } from 'openai/resources/conversations/items'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ScriptedQuestion, ScriptedTurn } from '../../src/llm/scripted/script.ts'
import { setStage } from '../support/agent.ts'
import { KEY } from '../support/server.ts'

const stage = await setStage(({ body }) => turnFor(body))
afterAll(() => stage[Symbol.asyncDispose]())
const { server } = stage
const LLM = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
const clientWith = (apiKey: string) => new OpenAI({ apiKey, baseURL: `${server.url}/v1`, maxRetries: 0 })
const openai = clientWith(KEY)

/** Names what the users have said, in order, or does what the last one asked for. */
function turnFor({ messages }: ScriptedQuestion['body']): ScriptedTurn {
  const textIn = ({ content }: { content?: unknown }) =>
    typeof content === 'string' ? content : JSON.stringify(content)
  const last = messages.at(-1)
  const said = textIn(last ?? {})
  if (last?.role === 'tool') return { text: 'It is done.' }
  const [command] = /touch \w+/.exec(said) ?? []
  if (command) return { text: 'Now.', calls: [{ name: 'Bash', arguments: { command } }] }
  if (said.includes('look up')) return { calls: [{ name: 'look_up', arguments: { number: '17' } }] }
  if (said.includes('finish')) return { calls: [{ name: 'Finish', arguments: { message: 'The same.' } }] }
  if (said.includes('same')) return { text: 'The same.' }
  if (said.includes('slowly')) return { text: 'one '.repeat(300), chunk_delay_ms: 500 }
  const users = messages.filter(({ role }) => role === 'user').map(textIn)
  return { reasoning: 'Counting.', text: `Said: ${users.join(', ')}` }
}

const LOOK_UP = { type: 'function', name: 'look_up', strict: false, parameters: { type: 'object' } } as const
const APPROVES = { type: 'mcp', server_label: 'agent-server', server_url: 'https://agent-server.invalid' } as const

beforeAll(async () => {
  await server.call('PUT', '/profiles/default', { tools: ['Bash'], llm_config: LLM })
  await server.call('PUT', '/profiles/finisher', { tools: ['Finish'], llm_config: LLM })
  await server.call('PUT', '/profiles/other', { tools: ['Bash'], llm_config: LLM })
})

const userSays = (content: string) => ({ type: 'message', role: 'user', content }) as const
const ask = (conversation: string, input: OpenAI.Responses.ResponseInput | string, more: object = {}) =>
  openai.responses.create({ model: 'default', conversation, input, ...more })
const listAll = async (id: string, query: OpenAI.Conversations.ItemListParams = { order: 'asc' }) =>
  await Array.fromAsync<ConversationItem>(await openai.conversations.items.list(id, query))
const restId = (id: string) => id.slice(5).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
const isRefused = (status: number, param: string | null, message: RegExp) =>
  expect.objectContaining({ status, param, message: expect.stringMatching(message) })

async function keyWith(fields: object): Promise<string> {
  const { body, status } = await server.call('POST', '/keys', { name: 'pages', ...fields })
  if (status !== 201) throw new Error(JSON.stringify(body))
  return body.key
}

test('a conversation is made, changed, read by the API of the server, and deleted', async () => {
  const made = await openai.conversations.create({ metadata: { ticket: '17' } })
  expect(made).toMatchObject({ object: 'conversation', metadata: { ticket: '17' } })
  expect(Math.abs(made.created_at - Date.now() / 1000)).toBeLessThan(600)
  expect(await openai.conversations.retrieve(made.id)).toEqual(made)
  const updated = await openai.conversations.update(made.id, { metadata: { owner: 'ada' } })
  expect(updated).toEqual({ ...made, metadata: { owner: 'ada' } })
  const { body } = await server.call('GET', `/conversations/${restId(made.id)}`)
  expect(body).toMatchObject({ profile: 'default', metadata: { owner: 'ada' }, state: { permission_mode: 'default' } })
  expect(await openai.conversations.delete(made.id)).toEqual({
    id: made.id,
    object: 'conversation.deleted',
    deleted: true,
  })
  await expect(openai.conversations.retrieve(made.id)).rejects.toMatchObject({ status: 404, code: 'not_found' })
})

test('responses of a conversation continue it, and their items are those of the conversation', async () => {
  const { id } = await openai.conversations.create()
  const first = await ask(id, 'one', { instructions: 'Be kind.' })
  expect(first).toMatchObject({ status: 'completed', conversation: { id }, previous_response_id: null })
  const second = await openai.responses.create({ model: 'default', conversation: { id }, input: 'two' })
  expect(second.output_text).toBe('Said: one, two')
  const streamed = await Array.fromAsync(
    await openai.responses.create({ model: 'default', conversation: id, input: 'three', stream: true }),
  )
  const third = streamed.flatMap((event) => (event.type === 'response.completed' ? [event.response] : [])).at(0)!
  expect(await openai.responses.retrieve(third.id)).toMatchObject({ conversation: { id }, output: third.output })

  const items = await listAll(id)
  const said = items.flatMap((item) => (item.type === 'message' && item.role === 'user' ? [item] : []))
  expect(said.map(({ content }) => content.map((part) => ('text' in part ? part.text : '')))).toEqual([
    ['one'],
    ['two'],
    ['three'],
  ])
  const outputs = items.filter((item) => !(item.type === 'message' && item.role === 'user'))
  expect(outputs).toEqual([first, second, third].flatMap(({ output }) => output))
  await expect(openai.responses.delete(third.id)).rejects.toMatchObject({ status: 409, code: 'response_is_used' })
  expect(await openai.responses.inputItems.list(third.id)).toMatchObject({ data: [said.at(-1)] })
  const fourth = await openai.responses.create({ model: 'default', previous_response_id: third.id, input: 'four' })
  expect(fourth.conversation).toEqual({ id })
  await expect(openai.responses.delete(fourth.id)).rejects.toMatchObject({ status: 409 })
  const fork = await openai.responses.create({ model: 'default', previous_response_id: first.id, input: 'else' })
  expect(fork.conversation).toBeNull()
  await openai.responses.delete(fork.id)
})

test('an answer that repeats an earlier one is an item, as in its response', async () => {
  const model = 'finisher'
  const body: object = { model }
  const { id } = await openai.conversations.create(body)
  const responses = [await ask(id, 'say the same', { model }), await ask(id, 'finish', { model })]
  expect(responses.map(({ output_text }) => output_text)).toEqual(['The same.', 'The same.'])
  const outputs = (await listAll(id)).filter((item) => !(item.type === 'message' && item.role === 'user'))
  expect(outputs).toEqual(responses.flatMap(({ output }) => output))
})

test('pages of items go in both directions, and each item can be read', async () => {
  const { id } = await openai.conversations.create()
  for (const text of ['one', 'two', 'three']) await ask(id, text)
  const items = await listAll(id)
  expect(items.map(({ type }) => type)).toEqual([1, 2, 3].flatMap(() => ['message', 'reasoning', 'message']))
  expect(new Set(items.map(({ id: itemId }) => itemId)).size).toBe(9)
  for (const limit of [1, 2, 4, 9, 100]) {
    expect(await listAll(id, { order: 'asc', limit })).toEqual(items)
    expect(await listAll(id, { limit })).toEqual(items.toReversed())
  }
  const page = await openai.conversations.items.list(id, { limit: 2, after: items[4]!.id! })
  expect(page).toMatchObject({ data: [items[3], items[2]], last_id: items[2]!.id, has_more: true })
  expect(await openai.conversations.items.retrieve(items[4]!.id!, { conversation_id: id })).toEqual(items[4])
  const missing = { order: 'asc', after: 'msg_missing' } as const
  await expect(openai.conversations.items.list(id, missing)).rejects.toEqual(isRefused(400, 'after', /not an item/))
  await expect(openai.conversations.items.retrieve('msg_missing', { conversation_id: id })).rejects.toMatchObject({
    status: 404,
  })
  await expect(openai.conversations.items.list(id, { limit: 1000 })).rejects.toMatchObject({ status: 400 })
})

test('messages are added without asking the agent, who reads them with the next response', async () => {
  const { id } = await openai.conversations.create({ items: [userSays('one'), userSays('two')] })
  const asked = stage.model.requests.length
  const added = await openai.conversations.items.create(id, { items: [userSays('three')] })
  expect(added).toMatchObject({
    object: 'list',
    data: [{ role: 'user', content: [{ text: 'three' }] }],
    has_more: false,
  })
  expect(stage.model.requests).toHaveLength(asked)
  expect((await listAll(id)).at(-1)).toEqual(added.data[0])
  expect((await ask(id, 'four')).output_text).toMatch(/one.*two.*three.*four/)
})

test('what does not map to a conversation is refused by name, and adds nothing', async () => {
  const { id } = await openai.conversations.create()
  const refused = [
    [{ role: 'assistant', content: 'I said so.' }, /role assistant/],
    [{ role: 'system', content: 'Obey.' }, /role system/],
    [{ type: 'function_call_output', call_id: 'c', output: 'x' }, /function_call_output/],
    [{ type: 'mcp_approval_response', approval_request_id: 'a', approve: true }, /mcp_approval_response/],
    [{ type: 'reasoning', id: 'r', summary: [] }, /reasoning/],
    [{ type: 'item_reference', id: 'm' }, /item_reference/],
  ] as const
  for (const [item, message] of refused) {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as a client sends it
    const items = [userSays('fine'), item] as OpenAI.Responses.ResponseInputItem[]
    await expect(openai.conversations.items.create(id, { items })).rejects.toEqual(isRefused(400, 'items', message))
    await expect(openai.conversations.create({ items })).rejects.toEqual(isRefused(400, 'items', message))
  }
  const many = Array.from({ length: 21 }, () => userSays('fine'))
  await expect(openai.conversations.items.create(id, { items: many })).rejects.toMatchObject({ status: 400 })
  await expect(openai.conversations.items.create(id, { items: [] })).rejects.toMatchObject({ status: 400 })
  const { data } = await openai.conversations.items.create(id, { items: [userSays('kept')] })
  const deleting = openai.conversations.items.delete(data[0]!.id!, { conversation_id: id })
  await expect(deleting).rejects.toEqual(isRefused(400, 'item_id', /cannot be deleted/))
  expect(await listAll(id)).toEqual(data)
})

test('a conversation has one model, that of its creation', async () => {
  const { id } = await openai.conversations.create()
  await expect(ask(id, 'one', { model: 'other' })).rejects.toEqual(isRefused(400, 'model', /must be default/))
  const body: object = { model: 'other' }
  const made = await openai.conversations.create(body)
  expect(await ask(made.id, 'one', { model: 'other' })).toMatchObject({ status: 'completed', model: 'other' })
  await expect(openai.conversations.create({ ...body, model: 'gpt-5' } as object)).rejects.toMatchObject({
    status: 404,
  })
  const first = await ask(id, 'one')
  await expect(ask(id, 'two', { previous_response_id: first.id })).rejects.toEqual(
    isRefused(400, 'conversation', /previous_response_id/),
  )
  await expect(ask('conv_1', 'one')).rejects.toEqual(isRefused(404, 'conversation', /no conversation/))
})

test('metadata that is too large, and a query or a conversation of another form, are refused', async () => {
  const { id } = await openai.conversations.create()
  const metadata = { a: 'x'.repeat(70_000) }
  await expect(openai.conversations.update(id, { metadata })).rejects.toMatchObject({ status: 400 })
  await expect(openai.conversations.create({ metadata })).rejects.toMatchObject({ status: 400 })
  for (const query of ['limit=0', 'limit=101', 'limit=many', 'limit=1&limit=2', 'order=up', 'after=a&after=b'])
    expect((await server.call('GET', `/v1/conversations/${id}/items?${query}`)).status, query).toBe(400)
  for (const conversation of [17, {}, { id: 17 }, [], true])
    expect(
      (await server.call('POST', '/v1/responses', { model: 'default', input: 'one', conversation })).status,
      JSON.stringify(conversation),
    ).toBe(400)
  for (const name of ['conv_', id.toUpperCase(), `${id}0`, '..%2f..', 'conv_%00', 'x'.repeat(4000)])
    for (const path of [name, `${name}/items`])
      expect((await server.call('GET', `/v1/conversations/${path}`)).status, path).toBe(404)
})

test('approvals and functions go through a conversation, and each call that waits must be answered', async () => {
  const { id } = await openai.conversations.create()
  const first = await ask(id, 'touch through_conversation', { tools: [APPROVES] })
  const request = first.output.flatMap((item) => (item.type === 'mcp_approval_request' ? [item] : [])).at(0)!
  expect((await listAll(id)).at(-1)).toEqual(request)
  await expect(openai.conversations.items.create(id, { items: [userSays('yes')] })).rejects.toMatchObject({
    status: 409,
    code: 'waiting_for_decision',
  })
  await expect(ask(id, 'yes', { tools: [APPROVES] })).rejects.toMatchObject({ status: 409 })
  const answer = { type: 'mcp_approval_response', approval_request_id: request.id, approve: true } as const
  const reader = clientWith(await keyWith({ scopes: ['read', 'write'] }))
  const answering = { model: 'default', conversation: id, input: [answer], tools: [APPROVES] }
  await expect(reader.responses.create(answering)).rejects.toMatchObject({ status: 403 })
  const second = await openai.responses.create(answering)
  expect(second.output_text).toBe('It is done.')
  await expect(openai.responses.create(answering)).rejects.toMatchObject({ status: 400, param: 'approval_request_id' })
  const called = await ask(id, 'look up', { tools: [APPROVES, LOOK_UP] })
  const call = called.output.flatMap((item) => (item.type === 'function_call' ? [item] : [])).at(0)!
  const output = { type: 'function_call_output', call_id: call.call_id, output: 'found' } as const
  await ask(id, [output], { tools: [APPROVES, LOOK_UP] })
  const types = (await listAll(id)).map((item) => item.type).filter((type) => type !== 'message')
  expect(types).toEqual([
    'mcp_approval_request',
    'mcp_approval_response',
    'mcp_call',
    'function_call',
    'function_call_output',
  ])
})

test('a conversation of the server is one of this API, without what was taken back', async () => {
  const { body } = await server.call('POST', '/conversations', { profile: 'default', initial_message: 'kept' })
  const id = `conv_${body.id.replaceAll('-', '')}`
  await server.call('POST', `/conversations/${body.id}/run`, { wait: true })
  const { last_seq } = (await server.call('GET', `/conversations/${body.id}`)).body
  const items = await listAll(id)
  await ask(id, 'undone')
  const { last_seq: now } = (await server.call('GET', `/conversations/${body.id}`)).body
  await server.call('POST', `/conversations/${body.id}/rewind`, { to_seq: last_seq, last_seq: now })
  expect(await listAll(id)).toEqual(items)
  const message = { role: 'user', content: 'withdrawn' }
  const posted = await server.call('POST', `/conversations/${body.id}/messages`, { message })
  await server.call('DELETE', `/conversations/${body.id}/messages/${posted.body.event_id}`)
  expect(await listAll(id)).toEqual(items)
})

test('a busy conversation is 409, and what waits in it can be stopped', async () => {
  const { id } = await openai.conversations.create()
  const working = await ask(id, 'slowly', { background: true })
  expect(working).toMatchObject({ status: 'in_progress', conversation: { id } })
  await expect(ask(id, 'more')).rejects.toMatchObject({ status: 409, code: 'conversation_running' })
  const adding = openai.conversations.items.create(id, { items: [userSays('more')] })
  await expect(adding).rejects.toMatchObject({ status: 409, code: 'conversation_running' })
  expect(await openai.responses.cancel(working.id)).toMatchObject({ status: 'cancelled' })
  expect((await ask(id, 'after')).status).toBe('completed')
})

test('words that were said before are said again, although the client counts a retry, and a lost answer is found', async () => {
  const { id } = await openai.conversations.create({})
  const retry = { headers: { 'x-stainless-retry-count': '1' } }
  const say = (input: string, options?: typeof retry) =>
    openai.responses.create({ model: 'default', conversation: id, input }, options)
  const first = await say('continue')
  expect((await say('continue', retry)).id).toBe(first.id)
  const slow = say('slowly')
  await expect.poll(async () => (await server.call('GET', `/conversations/${restId(id)}`)).body.status).toBe('running')
  await expect(say('continue')).rejects.toMatchObject({ status: 409 })
  await server.call('POST', `/conversations/${restId(id)}/pause`, { interrupt: true })
  await slow
  const again = await say('continue', retry)
  expect(again.id).not.toBe(first.id)
  expect(again.output_text).toBe('Said: continue, slowly, continue')
})

test('items that a repeated request adds are added once, and the same ones again by another request', async () => {
  const { id } = await openai.conversations.create({})
  const add = (headers: Record<string, string> = {}) =>
    openai.conversations.items.create(id, { items: [userSays('one'), userSays('two')] }, { headers })
  const keyed = { 'idempotency-key': 'k' }
  expect(await add(keyed)).toEqual(await add(keyed))
  expect(await listAll(id)).toHaveLength(2)
  const added = await add()
  expect(await add({ 'x-stainless-retry-count': '1' })).toEqual(added)
  expect(await listAll(id)).toHaveLength(4)
  await add()
  expect(await listAll(id)).toHaveLength(6)
})

test('a repeated creation adds no item again that was withdrawn, and leaves out none for the words of others', async () => {
  const headers = { 'idempotency-key': 'creates-with-items' }
  const create = () => openai.conversations.create({ items: [userSays('one'), userSays('two')] }, { headers })
  const { id } = await create()
  const path = `/conversations/${restId(id)}`
  const [first] = await stage.events(restId(id), 'types=UserMessage')
  expect((await server.call('DELETE', `${path}/messages/${first.id}`)).status).toBe(200)
  await server.call('POST', `${path}/messages`, { message: 'three' })
  expect((await create()).id).toBe(id)
  expect((await listAll(id)).map((item) => JSON.stringify(item).match(/one|two|three/)?.[0])).toEqual(['two', 'three'])
})

test('one of the requests with one key that make a conversation at once adds the items', async () => {
  const items = Array.from({ length: 20 }, (_, at) => userSays(`${at} ${'x'.repeat(20_000)}`))
  const make = () => openai.conversations.create({ items }, { headers: { 'idempotency-key': 'made-17' } })
  const outcomes = await Promise.allSettled([make(), make(), make(), make()])
  const busy = outcomes.filter((each) => each.status === 'rejected').map(({ reason }) => reason.status)
  expect(busy.every((status) => status === 409)).toBe(true)
  const { id } = await make()
  expect((await listAll(id)).length).toBe(20)
})

test('a key sees no conversations of others, whatever it does with them', async () => {
  const made = await openai.conversations.create({ items: [userSays('secret')] })
  const scopes = ['read', 'write', 'approve']
  const keys = [{ user_id: 'ada' }, { profiles: ['other'] }, { conversations: [crypto.randomUUID()] }]
  for (const limits of keys) {
    const limited = clientWith(await keyWith({ scopes, ...limits }))
    const { id } = made
    const model = 'profiles' in limits ? 'other' : 'default'
    const attempts = [
      () => limited.conversations.retrieve(id),
      () => limited.conversations.update(id, { metadata: { mine: 'yes' } }),
      () => limited.conversations.delete(id),
      () => limited.conversations.items.list(id),
      () => limited.conversations.items.create(id, { items: [userSays('x')] }),
      () => limited.responses.create({ model, conversation: id, input: 'repeat all' }),
    ]
    for (const attempt of attempts) await expect(attempt()).rejects.toMatchObject({ status: 404, code: 'not_found' })
  }
  expect(await openai.conversations.retrieve(made.id)).toEqual(made)
  expect(await listAll(made.id)).toHaveLength(1)
})

test('a key that is limited to one profile makes conversations of it, and one without rights makes and changes none', async () => {
  const limited = clientWith(await keyWith({ scopes: ['read', 'write'], profiles: ['other'] }))
  const made = await limited.conversations.create()
  expect(await limited.responses.create({ model: 'other', conversation: made.id, input: 'one' })).toMatchObject({
    status: 'completed',
  })
  expect(await limited.conversations.update(made.id, { metadata: { a: 'b' } })).toMatchObject({ metadata: { a: 'b' } })
  const reader = clientWith(await keyWith({ scopes: ['read'] }))
  const attempts = [
    () => reader.conversations.create(),
    () => reader.conversations.update(made.id, { metadata: {} }),
    () => reader.conversations.delete(made.id),
    () => reader.conversations.items.create(made.id, { items: [userSays('x')] }),
  ]
  for (const attempt of attempts)
    await expect(attempt()).rejects.toMatchObject({ status: 403, code: 'permission_denied' })
  await expect(clientWith('wrong').conversations.retrieve(made.id)).rejects.toMatchObject({ status: 401 })
})

test('conversations and their items are the same after a restart', async () => {
  const made = await openai.conversations.create({ items: [userSays('one')] })
  await ask(made.id, 'two')
  const items = await listAll(made.id)
  await server.restart('SIGKILL')
  expect(await openai.conversations.retrieve(made.id)).toEqual(made)
  expect(await listAll(made.id)).toEqual(items)
})
