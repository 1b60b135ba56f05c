/** The AI SDK: the transports and the reader of `ai`, and the state of `useChat` from `@ai-sdk/react`. */
import assert from 'node:assert/strict'
import { Chat } from '@ai-sdk/react'
import type { ChatInit, ChatTransport, UIMessage, UIMessageChunk } from 'ai'
import {
  DefaultChatTransport,
  WebSocketChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
  readUIMessageStream,
} from 'ai'
import * as cases from './cases.ts'

const api = `${cases.URL_OF_SERVER}/ai/chat`
const headersWith = (key: string) => ({ authorization: `Bearer ${key}` })
const transportWith = (key = cases.KEY_OF_SERVER, body: object = {}) =>
  new DefaultChatTransport<UIMessage>({ api, headers: headersWith(key), body: { profile: 'default', ...body } })

/** Sends its key as pages do, which cannot set a header: in the first frame. */
function socketTransport(token = cases.KEY_OF_SERVER) {
  const webSocket = class extends WebSocket {
    constructor(...place: ConstructorParameters<typeof WebSocket>) {
      super(...place)
      this.addEventListener('open', () => this.send(JSON.stringify({ type: 'auth', token })), { once: true })
    }
  }
  // The types of `ai` have no place for the events of the listeners.
  return new WebSocketChatTransport<UIMessage>({
    url: api,
    webSocket: webSocket as never,
    body: { profile: 'default' },
  })
}

type More = { readonly key?: string; readonly body?: object; readonly init?: Partial<ChatInit<UIMessage>> }
const chatWith = ({ key, body, init }: More = {}) =>
  new Chat<UIMessage>({ id: crypto.randomUUID(), transport: transportWith(key, body), ...init })

const textOf = (message: UIMessage | undefined): string =>
  (message?.parts ?? []).flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('|')

const callsIn = (message: UIMessage | undefined) =>
  (message?.parts ?? []).flatMap((part) => (part.type === 'dynamic-tool' ? [part] : []))

async function lastOf(stream: ReadableStream<UIMessageChunk>): Promise<UIMessage | undefined> {
  let last: UIMessage | undefined
  for await (const message of readUIMessageStream({ stream, terminateOnError: true })) last = message
  return last
}

const said = (text: string): UIMessage => ({ id: crypto.randomUUID(), role: 'user', parts: [{ type: 'text', text }] })

const send = (text: string, chatId: string, transport: ChatTransport<UIMessage> = transportWith()) =>
  transport.sendMessages({
    chatId,
    messages: [said(text)],
    trigger: 'submit-message',
    messageId: undefined,
    abortSignal: undefined,
  })

const stop = async (id: string) => {
  const headers = { ...headersWith(cases.KEY_OF_SERVER), 'content-type': 'application/json' }
  assert.ok((await fetch(`${api}/${id}/stop`, { method: 'POST', headers, body: '{}' })).ok)
}

async function decide(approved: boolean, more: Partial<ChatInit<UIMessage>> = {}): Promise<Chat<UIMessage>> {
  const init = { sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses, ...more }
  const chat = chatWith({ init })
  await chat.sendMessage({ text: cases.COMPUTE })
  const [call] = callsIn(chat.messages.at(-1))
  assert.deepEqual(call?.input, { command: cases.COMMAND })
  const reason = approved ? {} : { reason: cases.REASON }
  assert.equal(call?.state, 'approval-requested')
  await chat.addToolApprovalResponse({ id: call.approval.id, approved, ...reason })
  await cases.eventually(() => chat.error !== undefined || textOf(chat.messages.at(-1)).includes('Read: '))
  await cases.eventually(() => chat.status !== 'streaming')
  assert.equal(chat.error, undefined)
  return chat
}

await cases.runCases({
  async 'transport: text'() {
    assert.equal(textOf(await lastOf(await send(cases.SLOWLY, crypto.randomUUID()))), cases.WORDS)
  },
  async 'transport: reconnect'() {
    const id = crypto.randomUUID()
    const first = (await send(cases.ENDLESS, id)).getReader()
    await first.read()
    await first.cancel()
    const again = await transportWith().reconnectToStream({ chatId: id, headers: headersWith(cases.KEY_OF_SERVER) })
    const reading = lastOf(again!)
    await stop(id)
    assert.equal(callsIn(await reading).length, 0)
    assert.equal(await transportWith().reconnectToStream({ chatId: id }), null)
  },
  async 'useChat: text'() {
    const chat = chatWith()
    await chat.sendMessage({ text: cases.SLOWLY })
    assert.equal(chat.error, undefined)
    assert.equal(textOf(chat.messages.at(-1)), cases.WORDS)
    assert.ok(chat.messages.at(-1)!.parts.some(({ type }) => type === 'reasoning'))
  },
  async 'useChat: tool'() {
    const chat = chatWith()
    await chat.sendMessage({ text: cases.PLAN })
    const [call] = callsIn(chat.messages.at(-1))
    assert.deepEqual([call?.toolName, call?.state], ['TaskTracker', 'output-available'])
    assert.match(textOf(chat.messages.at(-1)), /^I plan\.\|Read: /)
  },
  async 'useChat: allow'() {
    const chat = await decide(true)
    assert.match(textOf(chat.messages.at(-1)).replace('I compute.|', ''), cases.RESULT)
    assert.equal(callsIn(chat.messages.at(-1))[0]?.state, 'output-available')
  },
  async 'useChat: deny'() {
    const chat = await decide(false)
    cases.assertDenied(textOf(chat.messages.at(-1)).replace('I compute.|', ''), cases.REASON)
    assert.equal(callsIn(chat.messages.at(-1))[0]?.state, 'output-denied')
  },
  async 'useChat: function'() {
    const tool = { name: 'look_up', description: 'Looks an order up.', input_schema: { type: 'object' } }
    const chat: Chat<UIMessage> = chatWith({
      body: { client_tools: [tool] },
      init: {
        sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls,
        onToolCall: ({ toolCall: { toolCallId } }) =>
          void chat.addToolOutput({ tool: 'look_up', toolCallId, output: cases.SHIPPED }),
      },
    })
    await chat.sendMessage({ text: cases.LOOK_UP })
    await cases.eventually(() => chat.error !== undefined || textOf(chat.messages.at(-1)).includes('Read: '))
    assert.ok(textOf(chat.messages.at(-1)).includes(cases.SHIPPED))
  },
  async 'useChat: stop'() {
    const chat = chatWith()
    const sent = chat.sendMessage({ text: cases.ENDLESS })
    await cases.eventually(() => textOf(chat.messages.at(-1)).includes('word word'))
    await stop(chat.id)
    await sent
    assert.equal(chat.error, undefined)
    assert.ok(textOf(chat.messages.at(-1)).length < 2500)
    await chat.sendMessage({ text: cases.HELLO })
    assert.equal(textOf(chat.messages.at(-1)), cases.GREETING)
  },
  async 'useChat: wrong key'() {
    const chat = chatWith({ key: cases.WRONG_KEY, init: { onError() {} } })
    await chat.sendMessage({ text: cases.HELLO })
    assert.match(chat.error!.message, /API key/)
  },
  async 'socket: text'() {
    const chat = chatWith({ init: { transport: socketTransport() } })
    await chat.sendMessage({ text: cases.SLOWLY })
    assert.equal(chat.error, undefined)
    assert.equal(textOf(chat.messages.at(-1)), cases.WORDS)
  },
  async 'socket: allow'() {
    const chat = await decide(true, { transport: socketTransport() })
    assert.match(textOf(chat.messages.at(-1)).replace('I compute.|', ''), cases.RESULT)
    assert.equal(callsIn(chat.messages.at(-1))[0]?.state, 'output-available')
  },
  async 'socket: reconnect'() {
    const id = crypto.randomUUID()
    const transport = socketTransport()
    const first = (await send(cases.ENDLESS, id, transport)).getReader()
    await first.read()
    transport.close()
    const again = await transport.reconnectToStream({ chatId: id })
    const reading = lastOf(again!)
    await stop(id)
    assert.equal(callsIn(await reading).length, 0)
    assert.equal(await transport.reconnectToStream({ chatId: id }), null)
  },
  async 'socket: stop'() {
    const chat = chatWith({ init: { transport: socketTransport() } })
    const sent = chat.sendMessage({ text: cases.ENDLESS })
    await cases.eventually(() => textOf(chat.messages.at(-1)).includes('word word'))
    await chat.stop()
    await sent
    await cases.eventually(async () => (await transportWith().reconnectToStream({ chatId: chat.id })) === null)
    await chat.sendMessage({ text: cases.HELLO })
    assert.equal(textOf(chat.messages.at(-1)), cases.GREETING)
  },
  async 'socket: wrong key'() {
    const chat = chatWith({ init: { transport: socketTransport(cases.WRONG_KEY), onError() {} } })
    await chat.sendMessage({ text: cases.HELLO })
    assert.match(chat.error!.message, /4401/)
  },
})
