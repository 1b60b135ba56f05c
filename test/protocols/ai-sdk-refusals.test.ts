/** The UI message stream: what is refused changes nothing. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { setStage } from '../support/agent.ts'
import { KEY } from '../support/server.ts'
import { LOOK_UP_BY_PAGE, uiChatTurn } from '../support/ui-chat-script.ts'
import { chatOf, storedMessages, uiTextOf } from '../support/ui-chat.ts'

const stage = await setStage(({ body }) => {
  const said = JSON.stringify(body.messages.at(-1)?.content)
  if (!said.includes('two questions')) return uiChatTurn(body)
  const turn = uiChatTurn({ ...body, messages: [{ role: 'user', content: 'which' }] })
  return { calls: ['calls' in turn ? (turn.calls ?? []) : []].flatMap((calls) => [...calls, ...calls]) }
})
afterAll(() => stage[Symbol.asyncDispose]())
const { server } = stage
const { url } = server
const LLM = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
const BLOCK = { type: 'command', command: 'if grep -q forbidden; then echo "not that" >&2; exit 2; fi' }
const HOOKED = { profile: 'hooked' }
let chats = 0
const newId = () => `refused-${++chats}`

beforeAll(async () => {
  const hooks = { UserPromptSubmit: [{ hooks: [BLOCK] }] }
  const fields = { tools: ['Bash', 'AskUserQuestion'], llm_config: LLM }
  await server.call('PUT', '/profiles/hooked', { ...fields, hooks })
})
afterAll(async () => {
  for (const { id } of await conversations()) await server.call('DELETE', `/conversations/${id}`)
  await server.call('DELETE', '/profiles/hooked')
})

type Listed = { readonly id: string; readonly external_id?: string; readonly client_tools?: readonly object[] }

const conversations = async (): Promise<Listed[]> => (await server.call('GET', '/conversations?limit=100')).body.items

async function post(body: object, key = KEY) {
  const response = await fetch(`${url}/ai/chat`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ ...HOOKED, ...body }),
  })
  return { status: response.status, text: await response.text() }
}

const said = (text: string, id: string, ...parts: object[]) => ({
  id,
  role: 'user',
  parts: [{ type: 'text', text }, ...parts],
})

/** Begins a chat; returns its answer. */
async function begin(id: string, text: string, body: object = {}) {
  const chat = chatOf({ url, id, body: { ...HOOKED, ...body } })
  await chat.sendMessage({ text })
  expect(chat.error).toBeUndefined()
  return chat
}

test('a new answer and an edited message that are refused leave the messages as they are', async () => {
  const id = newId()
  const chat = await begin(id, 'Hello')
  const before = await storedMessages({ url, id })
  const messages = [said('Hello', chat.messages[0]!.id)]
  const ofServer = { ...LOOK_UP_BY_PAGE, name: 'Bash' }
  const again = { id, trigger: 'regenerate-message', messages, client_tools: [ofServer] }
  expect(await post(again)).toMatchObject({ status: 400, text: expect.stringContaining('client_tools') })
  expect(await storedMessages({ url, id })).toEqual(before)
  const edited = { id, messageId: messages[0]!.id, messages: [said('forbidden', messages[0]!.id)] }
  expect(await post({ ...edited, client_tools: [LOOK_UP_BY_PAGE] })).toMatchObject({ status: 403 })
  expect(await storedMessages({ url, id })).toEqual(before)
  const added = { id, messages: [said('forbidden', 'm-2')], client_tools: [LOOK_UP_BY_PAGE] }
  expect(await post(added)).toMatchObject({ status: 403 })
  expect((await server.call('GET', `/conversations/${conversationOf(before[1]!)}`)).body.client_tools ?? []).toEqual([])
  // What is not refused takes the conversation back, with its tools.
  await chatOf({ url, id, chat: { messages: before }, body: { client_tools: [LOOK_UP_BY_PAGE] } }).regenerate()
  const stored = await storedMessages({ url, id })
  expect(stored.map((message) => uiTextOf(message))).toEqual(['Hello', 'Hello there.'])
  expect(stored[1]!.id).not.toBe(before[1]!.id)
})

const conversationOf = ({ metadata }: { metadata?: unknown }) =>
  (metadata as { conversation_id: string }).conversation_id

test('two answers to one call are refused, and the call still waits', async () => {
  const id = newId()
  const chat = await begin(id, 'touch it')
  const before = await storedMessages({ url, id })
  const [call] = before[1]!.parts.filter(({ type }) => type === 'dynamic-tool') as { approval: { id: string } }[]
  const decided = (approved: boolean) => ({
    ...call!,
    state: 'approval-responded',
    approval: { id: call!.approval.id, approved },
  })
  const parts = [decided(true), decided(false)]
  const refused = await post({ id, messages: [{ id: chat.messages[1]!.id, role: 'assistant', parts }] })
  expect(refused).toMatchObject({ status: 400, text: expect.stringContaining('is answered twice') })
  expect(await storedMessages({ url, id })).toEqual(before)
})

test('two outputs of one call are refused, and the call still waits', async () => {
  const id = newId()
  const chat = await begin(id, 'look up', { client_tools: [LOOK_UP_BY_PAGE] })
  const before = await storedMessages({ url, id })
  const call = before[1]!.parts.find(({ type }) => type === 'tool-look_up')
  const parts = ['sent', 'lost'].map((output) => ({ ...call, state: 'output-available', output }))
  const refused = await post({ id, messages: [{ id: chat.messages[1]!.id, role: 'assistant', parts }] })
  expect(refused).toMatchObject({ status: 400, text: expect.stringContaining('is answered twice') })
  expect(await storedMessages({ url, id })).toEqual(before)
})

test('an output for another chat is refused, though its call has the same id, and both calls still wait', async () => {
  const [id, otherId] = [newId(), newId()]
  await begin(id, 'look up', { client_tools: [LOOK_UP_BY_PAGE] })
  const other = await begin(otherId, 'look up', { client_tools: [LOOK_UP_BY_PAGE] })
  const before = await storedMessages({ url, id })
  const call = other.messages[1]!.parts.find(({ type }) => type === 'tool-look_up')
  expect(call).toMatchObject({
    toolCallId: Object(before[1]!.parts.find(({ type }) => type === 'tool-look_up')).toolCallId,
  })
  const parts = [{ ...call, state: 'output-available', output: 'of the other chat' }]
  const refused = await post({ id, messages: [{ id: other.messages[1]!.id, role: 'assistant', parts }] })
  expect(refused).toMatchObject({ status: 409, text: expect.stringContaining('does not have this answer') })
  expect(await storedMessages({ url, id })).toEqual(before)
})

test('answers to questions are all stored, or none', async () => {
  const id = newId()
  await begin(id, 'two questions')
  const before = await storedMessages({ url, id })
  const data = before[1]!.parts.filter(({ type }) => type === 'data-request') as { data: { request_id: string } }[]
  const [first = '', second = ''] = data.map((part) => part.data.request_id)
  const answered = (request_id: string, choice: string, question = '0') => ({
    type: 'data-answer',
    data: { request_id, answers: { [question]: choice } },
  })
  const answer = (...parts: object[]) => post({ id, messages: [{ id: 'm-2', role: 'user', parts }] })
  const twice = await answer(answered(first, 'SQLite'), answered(first, 'PostgreSQL'))
  expect(twice).toMatchObject({ status: 400, text: expect.stringContaining('is answered twice') })
  const wrong = await answer(answered(first, 'SQLite'), answered(second, 'SQLite', '7'))
  expect(wrong).toMatchObject({ status: 400, text: expect.stringContaining('index of a question') })
  expect(await storedMessages({ url, id })).toEqual(before)
})

test('a first message that is refused makes no chat', async () => {
  const id = newId()
  expect(await post({ id, messages: [said('forbidden', 'm-1')] })).toMatchObject({ status: 403 })
  expect((await conversations()).filter(({ external_id }) => external_id === id)).toEqual([])
  expect(await post({ id, messages: [said('Hello', 'm-1')] })).toMatchObject({ status: 200 })
})

test('the id of a message with another text is refused', async () => {
  const id = newId()
  const chat = await begin(id, 'Hello')
  const { id: messageId } = chat.messages[0]!
  const refused = await post({ id, messages: [said('Something else', messageId)] })
  expect(refused).toMatchObject({ status: 422, text: expect.stringContaining('another text') })
  expect(await post({ id, messages: [said('Hello', messageId)] })).toMatchObject({ status: 200 })
})

test('a message that was withdrawn begins no answer', async () => {
  const id = newId()
  const { id: conversation } = (await server.call('POST', '/conversations', { ...HOOKED, external_id: id })).body
  const path = `/conversations/${conversation}`
  await server.call('POST', `${path}/messages`, { message: 'endless', run: true })
  await server.call('POST', `${path}/pause`, { interrupt: true })
  const { event_id } = (await server.call('POST', `${path}/messages`, { message: 'Not this', run: false })).body
  expect((await server.call('DELETE', `${path}/messages/${event_id}`)).status).toBeLessThan(300)
  expect((await server.call('POST', `${path}/run`, {})).status).toBe(202)
  const stream = await fetch(`${url}/ai/chat/${id}/stream`, { headers: { authorization: `Bearer ${KEY}` } })
  await server.call('POST', `${path}/pause`, { interrupt: true })
  expect(await stream.text()).toContain('"type":"abort"')
})

test('a chat whose id is that of a conversation is this conversation for those who see it, whatever others call theirs', async () => {
  await server.call('PUT', '/profiles/strangers', { tools: ['Bash'], llm_config: LLM })
  const { body: limited } = await server.call('POST', '/keys', {
    name: 'strangers',
    scopes: ['read', 'write'],
    profiles: ['strangers'],
  })
  const { id } = (await server.call('POST', '/conversations', HOOKED)).body
  const theirs = await post({ id, messages: [said('Hello', 'm-1')], profile: 'strangers' }, limited.key)
  expect(theirs.status).toBe(200)
  expect((await post({ id, messages: [said('My secret', 'm-2')] })).status).toBe(200)
  expect(JSON.stringify(await stage.events(id, 'types=UserMessage'))).toContain('My secret')
  const response = await fetch(`${url}/ai/chat/${id}/messages`, { headers: { authorization: `Bearer ${limited.key}` } })
  expect(await response.text()).not.toContain('My secret')
})
