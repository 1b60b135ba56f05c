/** The UI message stream over a WebSocket, as `WebSocketChatTransport` of the AI SDK uses it. */
import { Chat } from '@ai-sdk/react'
import type { UIMessage } from 'ai'
import { lastAssistantMessageIsCompleteWithApprovalResponses } from 'ai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { setStageHere } from '../support/agent.ts'
import { KEY } from '../support/server.ts'
import { connect, connectAs, connectAsBrowser } from '../support/socket.ts'
import { uiChatTurn } from '../support/ui-chat-script.ts'
import { lastOf, plainMessages, socketTransportOf, storedMessages, transportOf, uiTextOf } from '../support/ui-chat.ts'
import { until } from '../support/until.ts'

const stage = await setStageHere(({ body }) => uiChatTurn(body))
afterAll(() => stage[Symbol.asyncDispose]())
const { server } = stage
const { url } = server
const LLM = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key', num_retries: 1 }
const body = { profile: 'coder' }
const SLOWLY = 'one two three four five six seven'
let chats = 0
const newId = () => `socket-${++chats}`

beforeAll(async () => {
  await server.call('PUT', '/profiles/coder', { tools: ['Bash', 'AskUserQuestion'], llm_config: LLM })
  await server.call('PUT', '/profiles/free', { tools: ['Bash'], permission_mode: 'bypass', llm_config: LLM })
})

type Options = { readonly id?: string; readonly key?: string; readonly init?: object; readonly profile?: string }

/** The state of `useChat` and its transport. */
function chatOverSocket({ id = newId(), key = KEY, init, profile = 'coder' }: Options = {}) {
  const transport = socketTransportOf({ url, key, body: { profile } })
  return { chat: new Chat<UIMessage>({ id, transport, onError() {}, ...init }), transport, id }
}

const said = (text: string): UIMessage => ({ id: crypto.randomUUID(), role: 'user', parts: [{ type: 'text', text }] })

const submission = (chatId: string, text: string) => ({
  chatId,
  messages: [said(text)],
  trigger: 'submit-message' as const,
  messageId: undefined,
  abortSignal: undefined,
})

const frameOf = (id: string, text: string) => ({ type: 'send', id, messages: [said(text)], headers: {}, body })

type Listed = { readonly id: string; readonly external_id?: string; readonly status: string }

async function conversationOf(chatId: string): Promise<Listed | undefined> {
  const items: Listed[] = (await server.call('GET', '/conversations?limit=100')).body.items
  return items.find(({ external_id }) => external_id === chatId)
}

const statusOf = async (chatId: string) => (await conversationOf(chatId))?.status

test('a chat has the same messages over a WebSocket as over event streams', async () => {
  const { chat, id } = chatOverSocket()
  await chat.sendMessage({ text: 'Hello' })
  expect(chat.error).toBeUndefined()
  await chat.sendMessage({ text: 'slowly' })
  expect(chat.messages.map(uiTextOf)).toEqual(['Hello', 'Hello there.', 'slowly', SLOWLY])
  expect(await storedMessages({ url, id })).toEqual(plainMessages(chat.messages))
  await chat.regenerate()
  expect(await storedMessages({ url, id })).toEqual(plainMessages(chat.messages))
})

test('a call is approved on the same socket, and a question of another chat is answered meanwhile', async () => {
  const init = { sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses }
  const { chat, transport } = chatOverSocket({ init })
  await chat.sendMessage({ text: 'touch it' })
  expect(uiTextOf(await lastOf(await transport.sendMessages(submission(newId(), 'slowly'))))).toBe(SLOWLY)
  for (const part of chat.messages.at(-1)!.parts)
    if (part.type === 'dynamic-tool' && part.state === 'approval-requested')
      await chat.addToolApprovalResponse({ id: part.approval.id, approved: true })
  await expect.poll(() => uiTextOf(chat.messages.at(-1))).toMatch(/^Now\.\|Read: /)
})

test('a reader that comes back reads the turn from its beginning, and there is none in a chat at rest', async () => {
  const { chat, transport, id } = chatOverSocket({ profile: 'free' })
  const sending = chat.sendMessage({ text: 'wait' })
  await until('the call', async () => JSON.stringify(chat.messages).includes('until'))
  // The connection is lost: the agent works on.
  transport.close()
  await sending
  expect(chat.error).toBeDefined()
  const resumed = (await transport.reconnectToStream({ chatId: id }))!
  const { id: conversationId } = (await conversationOf(id))!
  const headers = { authorization: `Bearer ${KEY}` }
  await fetch(`${url}/conversations/${conversationId}/files/go`, { method: 'PUT', headers, body: '' })
  const read = (await lastOf(resumed))!
  expect(uiTextOf(read)).toMatch(/^I wait\.\|Read: .*over/)
  expect(plainMessages([read])).toEqual((await storedMessages({ url, id })).slice(1))
  expect(await transport.reconnectToStream({ chatId: id })).toBeNull()
  expect(await transport.reconnectToStream({ chatId: 'nobody-began-it' })).toBeNull()
})

describe('a stop of the client stops the agent', () => {
  test('while it writes, and the next message is answered', async () => {
    const { chat, id } = chatOverSocket()
    const sending = chat.sendMessage({ text: 'endless' })
    await until('the beginning of the answer', async () => uiTextOf(chat.messages.at(-1)).includes('word'))
    await chat.stop()
    await sending
    await until('the end of the run', async () => (await statusOf(id)) === 'paused')
    await chat.sendMessage({ text: 'Hello' })
    expect(uiTextOf(chat.messages.at(-1))).toBe('Hello there.')
  })

  test('before it has begun, also of a client that leaves at once', async () => {
    const id = newId()
    const raw = await connect(url, '/ai/chat')
    raw.say({ ...frameOf(id, 'endless'), requestId: 'r-1' })
    raw.say({ type: 'abort', requestId: 'r-1' })
    raw.ws.close()
    expect(await raw.closed).toBe(1005)
    await until('the end of the run', async () => (await statusOf(id)) === 'paused')
  })

  test('from a page that has come back', async () => {
    const id = newId()
    const first = (await transportOf({ url, body }).sendMessages(submission(id, 'endless'))).getReader()
    await first.read()
    await first.cancel()
    const stopping = new AbortController()
    const { transport } = chatOverSocket()
    const resumed = await transport.reconnectToStream({ chatId: id, abortSignal: stopping.signal })
    expect(resumed).not.toBeNull()
    stopping.abort()
    await until('the end of the run', async () => (await statusOf(id)) === 'paused')
  })
})

describe('a key', () => {
  const keyWith = async (fields: object) => (await server.call('POST', '/keys', { name: 'a test', ...fields })).body

  test('that only reads follows an answer, and neither sends nor stops', async () => {
    const id = newId()
    const first = (await transportOf({ url, body }).sendMessages(submission(id, 'endless'))).getReader()
    await first.read()
    const { key } = await keyWith({ scopes: ['read'] })
    const { chat, transport } = chatOverSocket({ key })
    await chat.sendMessage({ text: 'Hello' })
    expect(chat.error!.message).toMatch(/scope/)
    const stopping = new AbortController()
    const resumed = (await transport.reconnectToStream({ chatId: id, abortSignal: stopping.signal }))!.getReader()
    expect((await resumed.read()).value).toMatchObject({ type: 'start' })
    stopping.abort()
    // A frame later the server has read the abort.
    expect(await transport.reconnectToStream({ chatId: 'nobody-began-it' })).toBeNull()
    expect(await statusOf(id)).toBe('running')
    await server.call('POST', `/ai/chat/${id}/stop`, {})
  })

  test('of another profile or user does not see the chat', async () => {
    const { chat, id } = chatOverSocket()
    await chat.sendMessage({ text: 'Hello' })
    const scopes = ['read', 'write']
    const { key } = await keyWith({ scopes, user_id: 'somebody' })
    expect(await chatOverSocket({ key }).transport.reconnectToStream({ chatId: id })).toBeNull()
    const { key: ofProfile } = await keyWith({ scopes, profiles: ['other'] })
    const other = chatOverSocket({ key: ofProfile })
    await other.chat.sendMessage({ text: 'Hello' })
    expect(other.chat.error).toBeDefined()
  })

  test('that is revoked ends the socket, and the agent works on', async () => {
    const { id: keyId, key } = await keyWith({ scopes: ['read', 'write'] })
    const id = newId()
    const raw = await connectAs(url, '/ai/chat', { headers: { authorization: `Bearer ${key}` } })
    raw.say({ ...frameOf(id, 'endless'), requestId: 'r-1' })
    await raw.until(({ type }) => type === 'start')
    await server.call('DELETE', `/keys/${keyId}`)
    expect(await raw.closed).toBe(4401)
    expect(raw.frames.at(-1)).toMatchObject({ type: 'error', errorText: expect.stringContaining('revoked') })
    expect(await statusOf(id)).toBe('running')
    await fetch(`${url}/ai/chat/${id}/stop`, { method: 'POST', headers: { authorization: `Bearer ${KEY}` } })
  })

  test('that is wrong, or missing, opens no socket, and neither does a page of another origin', async () => {
    const refused = async (headers: Record<string, string>) =>
      await connectAs(url, '/ai/chat', { headers }).catch(({ status }: { status: number }) => status)
    expect(await refused({ authorization: 'Bearer wrong-key-0123456789' })).toBe(401)
    const evil = { authorization: `Bearer ${KEY}`, origin: 'https://evil.example' }
    expect(await refused(evil)).toBe(403)
    const { chat } = chatOverSocket({ key: 'wrong-key-0123456789' })
    await chat.sendMessage({ text: 'Hello' })
    expect(chat.error!.message).toContain('4401')
    expect((await fetch(`${url}/ai/chat`, { headers: { authorization: `Bearer ${KEY}` } })).status).toBe(426)
  })
})

test('a wrong frame is an error of its request, and the next one is answered', async () => {
  const raw = await connectAsBrowser(url, '/ai/chat')
  for (const frame of ['no json', '[]', '['.repeat(5000), { type: 'hello', requestId: 'r-1' }]) raw.say(frame)
  raw.say({ type: 'resume', requestId: 'r-2', id: 'x', lastSequence: 3, headers: {}, body: {} })
  raw.say({ type: 'resume', requestId: 'r-3', id: 'x'.repeat(201), headers: {}, body: {} })
  raw.say({ type: 'send', requestId: 'r-4', id: newId(), messages: [], headers: {}, body: {} })
  raw.say({ type: 'abort', requestId: 'r-5' })
  await until('the errors', async () => raw.frames.length === 7)
  expect(raw.frames.map(({ type }) => type)).toEqual(Array.from({ length: 7 }, () => 'error'))
  const ids = raw.frames.map(({ requestId }) => requestId)
  expect(ids).toEqual(expect.arrayContaining(['', 'r-1', 'r-2', 'r-3', 'r-4']))
  raw.say({ ...frameOf(newId(), 'Hello'), requestId: 'r-6' })
  await raw.until(({ type, requestId }) => type === 'end' && requestId === 'r-6')
  const chunks = raw.frames.filter(({ type }) => type === 'chunk')
  expect(chunks.map(({ sequence }) => sequence)).toEqual(chunks.map((_, at) => at))
  raw.close()
})

test('a socket has sixteen requests at a time, and each has its own id', async () => {
  const raw = await connect(url, '/ai/chat')
  const ids = Array.from({ length: 17 }, newId)
  for (const [at, id] of ids.entries()) raw.say({ ...frameOf(id, 'endless'), requestId: `r-${at}` })
  const refused = await raw.until(({ type }) => type === 'error')
  expect(refused).toMatchObject({ requestId: 'r-16', errorText: expect.stringContaining('16 requests') })
  raw.say({ ...frameOf(newId(), 'endless'), requestId: 'r-0' })
  await until('the second error', async () => raw.frames.filter(({ type }) => type === 'error').length === 2)
  for (const at of ids.keys()) raw.say({ type: 'abort', requestId: `r-${at}` })
  await until('the ends', async () => raw.frames.filter(({ type }) => type === 'end').length === 16)
  raw.close()
})
