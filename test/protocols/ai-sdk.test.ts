/** The UI message stream, as the client of the AI SDK uses it, on a real server: answers, tools, stops and errors. */
import type { UIMessage, UIMessageChunk } from 'ai'
import { lastAssistantMessageIsCompleteWithApprovalResponses, lastAssistantMessageIsCompleteWithToolCalls } from 'ai'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { setStage } from '../support/agent.ts'
import { KEY } from '../support/server.ts'
import { LOOK_UP_BY_PAGE, uiChatTurn } from '../support/ui-chat-script.ts'
import { chatOf, lastOf, plainMessages, storedMessages, transportOf, uiTextOf } from '../support/ui-chat.ts'

const stage = await setStage(({ body }) => uiChatTurn(body))
afterAll(() => stage[Symbol.asyncDispose]())
const { server } = stage
const { url } = server
const LLM = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key', num_retries: 1 }
const WITH_CODER = { profile: 'coder' }
const FREELY = { profile: 'free' }
let chats = 0
const newId = () => `chat-${++chats}`

beforeAll(async () => {
  await server.call('PUT', '/profiles/coder', { tools: ['Bash', 'AskUserQuestion'], llm_config: LLM })
  await server.call('PUT', '/profiles/free', { tools: ['Bash'], permission_mode: 'bypass', llm_config: LLM })
})

const post = (body: object, key = KEY) =>
  fetch(`${url}/ai/chat`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })

const said = (text: string, id: string): UIMessage => ({ id, role: 'user', parts: [{ type: 'text', text }] })

test('an answer has reasoning and text, and a page that is loaded has the same messages', async () => {
  const id = newId()
  const chat = chatOf({ url, id, body: WITH_CODER })
  await chat.sendMessage({ text: 'Hello' })
  expect(chat.error).toBeUndefined()
  await chat.sendMessage({ text: 'Hello again' })
  expect(chat.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant'])
  expect(chat.messages[1]!.parts).toMatchObject([
    { type: 'step-start' },
    { type: 'reasoning', text: 'A greeting.', state: 'done' },
    { type: 'text', text: 'Hello there.', state: 'done' },
  ])
  expect(chat.messages[3]!.metadata).toMatchObject({ stop_reason: 'completed', usage: {} })
  expect(await storedMessages({ url, id })).toEqual(plainMessages(chat.messages))
  expect(await storedMessages({ url, id: 'nobody-began-it' })).toEqual([])
})

test('calls wait for a decision, which continues the same message, and each is executed once', async () => {
  const id = newId()
  const sendAutomaticallyWhen = lastAssistantMessageIsCompleteWithApprovalResponses
  const chat = chatOf({ url, id, body: WITH_CODER, chat: { sendAutomaticallyWhen } })
  await chat.sendMessage({ text: 'touch it' })
  const approvals = approvalsIn(chat.messages)
  expect(approvals.length).toBe(2)
  // A message decides nothing.
  const refused = await post({ id, messages: [said('And now?', 'm-2')] })
  expect([refused.status, await refused.text()]).toEqual([409, expect.stringContaining('waits for a decision')])
  expect(await storedMessages({ url, id })).toEqual(plainMessages(chat.messages))

  await chat.addToolApprovalResponse({ id: approvals[0]!, approved: true })
  await chat.addToolApprovalResponse({ id: approvals[1]!, approved: false, reason: 'Not this one.' })
  await expect.poll(() => uiTextOf(chat.messages.at(-1))).toMatch(/^Now\.\|Read: /)
  await expect.poll(() => chat.status).toBe('ready')
  expect(chat.messages.length).toBe(2)
  expect(chat.messages[1]!.parts.filter(({ type }) => type === 'dynamic-tool')).toMatchObject([
    { state: 'output-available', toolName: 'Bash', providerExecuted: true },
    { state: 'output-denied', approval: { approved: false, reason: 'Not this one.' } },
  ])
  expect(await storedMessages({ url, id })).toEqual(plainMessages(chat.messages))

  // The same answers again decide nothing, and what the client has is not sent again.
  const again = await post({ id, messages: chat.messages.slice(0, 2).map(answeredAgain) })
  expect(await again.text()).not.toContain('"Now."')
  const file = `${url}/conversations/${conversationOf(chat.messages[1]!)}/files/made`
  const made = await fetch(file, { headers: { authorization: `Bearer ${KEY}` } })
  expect(await made.text()).toBe('run\n')
})

const conversationOf = ({ metadata }: UIMessage) => (metadata as { conversation_id: string }).conversation_id

const approvalsIn = (messages: readonly UIMessage[]): string[] =>
  messages
    .at(-1)!
    .parts.flatMap((part) =>
      part.type === 'dynamic-tool' && part.state === 'approval-requested' ? [part.approval.id] : [],
    )

const answeredAgain = (message: UIMessage): unknown => ({
  ...message,
  parts: message.parts.map((part) =>
    part.type === 'dynamic-tool' ? { ...part, state: 'approval-responded', approval: { ...part.approval } } : part,
  ),
})

test('a decision needs the scope approve, and a chat belongs to the user of the key', async () => {
  const keyOf = async (fields: object) => (await server.call('POST', '/keys', { name: 'page', ...fields })).body.key
  const key = await keyOf({ scopes: ['read', 'write'], user_id: 'user-1' })
  const other = await keyOf({ scopes: ['read', 'write', 'approve'], user_id: 'user-2' })
  const id = newId()
  const chat = chatOf({ url, id, key, body: WITH_CODER })
  await chat.sendMessage({ text: 'touch it' })
  const [approval = ''] = approvalsIn(chat.messages)
  await chat.addToolApprovalResponse({ id: approval, approved: true })
  await chat.sendMessage()
  expect(chat.error?.message).toContain('lacks the scope approve')
  expect(await storedMessages({ url, id, key: other })).toEqual([])
  const stolen = await post({ id, messages: chat.messages.slice(1), profile: 'coder' }, other)
  expect([stolen.status, await stolen.text()]).toEqual([404, expect.stringContaining('There is no chat')])
  expect((await post({ id, messages: [said('Hello', 'm-1')] }, 'no-key')).status).toBe(401)
})

test('a tool of the page is executed by it, without a decision', async () => {
  const chat = chatOf({
    url,
    id: newId(),
    body: { ...WITH_CODER, client_tools: [LOOK_UP_BY_PAGE] },
    chat: {
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls,
      onToolCall({ toolCall }) {
        void chat.addToolOutput({ tool: 'look_up', toolCallId: toolCall.toolCallId, output: 'shipped' })
      },
    },
  })
  await chat.sendMessage({ text: 'look up' })
  await expect.poll(() => uiTextOf(chat.messages.at(-1))).toContain('shipped')
  expect(chat.messages.length).toBe(2)
  expect(chat.messages[1]!.parts[1]).toMatchObject({ type: 'tool-look_up', state: 'output-available' })
  await expect.poll(() => chat.status).toBe('ready')
  expect(await storedMessages({ url, id: chat.id })).toEqual(plainMessages(chat.messages))
  // What the page had before stays as it was.
  const later = chatOf({ url, id: chat.id, body: { client_tools: [] }, chat: { messages: chat.messages } })
  await later.sendMessage({ text: 'Hello' })
  expect(later.error).toBeUndefined()
  expect(await storedMessages({ url, id: chat.id })).toEqual(plainMessages(later.messages))
})

test('a question is a part, and a part answers it', async () => {
  const id = newId()
  const chat = chatOf({ url, id, body: WITH_CODER })
  await chat.sendMessage({ text: 'which' })
  const part = chat.messages[1]!.parts.find(({ type }) => type === 'data-request')
  expect(part).toMatchObject({ data: { kind: 'question', status: 'open' } })
  const { request_id } = (part as { data: { request_id: string } }).data
  const answer = { type: 'data-answer' as const, data: { request_id, answers: { '0': 'PostgreSQL' } } }
  await chat.sendMessage({ role: 'user', parts: [answer] })
  expect(uiTextOf(chat.messages[1])).toContain('PostgreSQL')
  expect(chat.messages[1]!.parts).toContainEqual(
    expect.objectContaining({ data: expect.objectContaining({ status: 'answered' }) }),
  )
})

test('regenerating and editing take the conversation back', async () => {
  const id = newId()
  const chat = chatOf({ url, id, body: WITH_CODER })
  for (const text of ['count', 'count again']) await chat.sendMessage({ text })
  expect(uiTextOf(chat.messages.at(-1))).toBe('Answer 2.')
  await chat.regenerate()
  expect(chat.error).toBeUndefined()
  expect(chat.messages.map((message) => uiTextOf(message))).toEqual(['count', 'Answer 1.', 'count again', 'Answer 2.'])
  await chat.sendMessage({ text: 'count anew', messageId: chat.messages[0]!.id })
  expect(chat.messages.map((message) => uiTextOf(message))).toEqual(['count anew', 'Answer 1.'])
  expect(await storedMessages({ url, id })).toEqual(plainMessages(chat.messages))
})

test('a lost connection does not stop the agent: the stream is replayed from its beginning, and continues', async () => {
  const id = newId()
  const transport = transportOf({ url, body: FREELY })
  const reconnect = () => transport.reconnectToStream({ chatId: id })
  expect(await reconnect()).toBeNull()
  const left = new AbortController()
  const message = said('wait', 'm-1')
  const trigger = 'submit-message' as const
  const request = { chatId: id, messages: [message], trigger, messageId: undefined }
  // Until the call: the start, a step, and its text.
  await readChunks(await transport.sendMessages({ ...request, abortSignal: left.signal }), 6)
  left.abort()
  const busy = await post({ id, messages: [said('Me, too', 'm-2')] })
  expect([busy.status, busy.headers.get('retry-after')]).toEqual([409, '1'])
  const resumed = (await reconnect())!
  // The same request again is the same turn.
  const again = await transport.sendMessages({ ...request, abortSignal: undefined })
  const endings = Promise.all([lastOf(resumed), lastOf(again)])
  await letGo((await storedMessages({ url, id })).at(-1)!)
  const [one, two] = await endings
  expect(uiTextOf(one)).toMatch(/^I wait\.\|Read: .*over/s)
  expect(two).toEqual(one)
  expect(await storedMessages({ url, id })).toEqual(plainMessages([message, one!]))
  expect(await reconnect()).toBeNull()
})

/** Ends the command that waits. */
async function letGo(message: UIMessage): Promise<void> {
  const file = `${url}/conversations/${conversationOf(message)}/files/go`
  const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/octet-stream' }
  expect((await fetch(file, { method: 'PUT', headers, body: 'go' })).ok).toBe(true)
}

const stop = (id: string) =>
  fetch(`${url}/ai/chat/${id}/stop`, { method: 'POST', headers: { authorization: `Bearer ${KEY}` } })

/** Reads up to this number of chunks. */
async function readChunks(stream: ReadableStream<UIMessageChunk>, count: number): Promise<void> {
  const reader = stream.getReader()
  for (let left = count; left > 0; left--) if ((await reader.read()).done) return
}

test('wherever a connection is cut, the client has the whole message in the end', async () => {
  const texts = Array.from({ length: 10 }, async (_, cutAt) => {
    const id = newId()
    const transport = transportOf({ url, body: WITH_CODER })
    const left = new AbortController()
    const request = { chatId: id, messages: [said('slowly', 'm-1')], messageId: undefined, abortSignal: left.signal }
    await readChunks(await transport.sendMessages({ ...request, trigger: 'submit-message' }), cutAt)
    left.abort()
    const resumed = await transport.reconnectToStream({ chatId: id })
    if (resumed) await lastOf(resumed)
    return uiTextOf((await storedMessages({ url, id })).at(-1))
  })
  expect(new Set(await Promise.all(texts))).toEqual(new Set(['one two three four five six seven']))
})

test('a stop interrupts the agent, whose words stay, and the next message is answered', async () => {
  const id = newId()
  const chat = chatOf({ url, id, body: WITH_CODER })
  const sending = chat.sendMessage({ text: 'endless' })
  await expect.poll(() => uiTextOf(chat.messages.at(-1))).toMatch(/^word word/)
  expect((await stop(id)).status).toBe(200)
  await sending
  expect(chat.status).toBe('ready')
  expect(chat.messages[1]!.metadata).toMatchObject({ stop_reason: 'paused' })
  expect(await storedMessages({ url, id })).toEqual(plainMessages(chat.messages))
  await chat.sendMessage({ text: 'Hello' })
  expect(uiTextOf(chat.messages.at(-1))).toBe('Hello there.')
  expect((await stop('nobody-began-it')).status).toBe(404)
})

test('a failed attempt is taken back, and a failed run is an error', async () => {
  const chat = chatOf({ url, id: newId(), body: WITH_CODER })
  await chat.sendMessage({ text: 'cut off' })
  expect(uiTextOf(chat.messages[1])).toBe('Hello there.')
  await chat.sendMessage({ text: 'fail' })
  expect([chat.status, chat.error?.message]).toEqual(['error', expect.stringContaining('no such thing')])
})

test('a message that is posted while the agent works is a part of its answer', async () => {
  const id = newId()
  const chat = chatOf({ url, id, body: FREELY })
  const sending = chat.sendMessage({ text: 'wait' })
  await expect.poll(() => chat.messages[1]?.parts.some(({ type }) => type === 'dynamic-tool')).toBe(true)
  const conversation = conversationOf(chat.messages[1]!)
  await server.call('POST', `/conversations/${conversation}/messages`, { message: 'Hello, too', run: true })
  await letGo(chat.messages[1]!)
  await sending
  const types = ['step-start', 'text', 'dynamic-tool', 'steering-message', 'step-start', 'reasoning', 'text']
  expect(chat.messages[1]!.parts.map(({ type }) => type)).toEqual(types)
  expect(await storedMessages({ url, id })).toEqual(plainMessages(chat.messages))
})

test('the stream has its headers, and what is wrong is said before it', async () => {
  const answer = await post({ id: newId(), messages: [said('Hello', 'm-1')], profile: 'coder', unknown_field: 1 })
  expect(answer.headers.get('x-vercel-ai-ui-message-stream')).toBe('v1')
  expect(answer.headers.get('x-accel-buffering')).toBe('no')
  expect(await answer.text()).toMatch(/\n\ndata: \[DONE\]\n\n$/)
  const id = newId()
  const file = { type: 'file', mediaType: 'image/png', url: 'http://127.0.0.1/image.png' }
  const refused: [object, number, string][] = [
    [{ id, messages: [] }, 400, 'messages'],
    [{ id, messages: [said('Hello', 'm-1')], profile: 'no-such' }, 404, 'no profile'],
    [{ id, messages: [{ ...said('', 'm-1'), parts: [file] }], profile: 'coder' }, 400, 'remote URLs are not fetched'],
    [{ id, messages: [{ id: 'a b', role: 'user', parts: [] }] }, 400, 'visible ASCII'],
  ]
  for (const [body, status, words] of refused) {
    const response = await post(body)
    expect([response.status, await response.text()]).toEqual([status, expect.stringContaining(words)])
  }
  // What is refused makes no conversation.
  expect((await stop(id)).status).toBe(404)
})

test('after a kill, a decision of another client continues the answer, and the page gets the rest', async () => {
  const id = newId()
  const sendAutomaticallyWhen = lastAssistantMessageIsCompleteWithApprovalResponses
  const chat = chatOf({ url, id, body: WITH_CODER, chat: { sendAutomaticallyWhen } })
  await chat.sendMessage({ text: 'touch it' })
  await server.restart('SIGKILL')
  expect(await storedMessages({ url, id })).toEqual(plainMessages(chat.messages))
  const path = `/conversations/${conversationOf(chat.messages[1]!)}/requests`
  const [{ request_id, payload }] = (await server.call('GET', path)).body.items
  const decisions = payload.tool_uses.map(({ tool_use_id, input_hash }: Record<string, string>) => {
    return { tool_use_id, input_hash, behavior: 'allow' }
  })
  expect((await server.call('POST', `${path}/${request_id}`, { kind: 'permission', decisions })).status).toBe(200)
  // What the page says afterwards decides nothing: the calls have run.
  for (const approval of approvalsIn(chat.messages))
    await chat.addToolApprovalResponse({ id: approval, approved: false })
  await expect.poll(() => uiTextOf(chat.messages.at(-1))).toMatch(/^Now\.\|Read: /)
  await expect.poll(() => chat.status).toBe('ready')
  expect(await storedMessages({ url, id })).toEqual(plainMessages(chat.messages))
})
