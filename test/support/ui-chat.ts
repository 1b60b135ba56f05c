/** The client of the AI SDK: the state of `useChat` and its transport, without a page. */
import { Chat } from '@ai-sdk/react'
import type { ChatInit, UIMessage, UIMessageChunk } from 'ai'
import { DefaultChatTransport, WebSocketChatTransport, readUIMessageStream } from 'ai'
import { KEY } from './server.ts'

type UiClientOptions = {
  readonly url: string
  readonly id: string
  readonly key?: string
  readonly body?: object
  readonly chat?: Partial<ChatInit<UIMessage>>
}

export const transportOf = ({ url, key = KEY, body }: Omit<UiClientOptions, 'id'>) =>
  new DefaultChatTransport<UIMessage>({
    api: `${url}/ai/chat`,
    headers: { authorization: `Bearer ${key}` },
    ...(body && { body }),
  })

/** The transport of `ai` over a WebSocket, which sends its key as a page does: in the first frame. */
export const socketTransportOf = ({ url, key = KEY, body }: Omit<UiClientOptions, 'id'>) =>
  new WebSocketChatTransport<UIMessage>({
    url: `${url}/ai/chat`,
    webSocket: socketWith(key) as never,
    ...(body && { body }),
  })

/** The types of `ai` have no place for the events of the listeners. */
function socketWith(token: string): unknown {
  return class extends WebSocket {
    constructor(...place: ConstructorParameters<typeof WebSocket>) {
      super(...place)
      this.addEventListener('open', () => this.send(JSON.stringify({ type: 'auth', token })), { once: true })
    }
  }
}

/** Makes the chat of a page with `useChat`. */
export const chatOf = ({ id, chat, ...options }: UiClientOptions) =>
  new Chat<UIMessage>({ id, transport: transportOf(options), ...chat })

/** The messages that a page begins with. */
export async function storedMessages({ url, id, key = KEY }: Omit<UiClientOptions, 'body'>): Promise<UIMessage[]> {
  const response = await fetch(`${url}/ai/chat/${encodeURIComponent(id)}/messages`, {
    headers: { authorization: `Bearer ${key}` },
  })
  return JSON.parse(await response.text())
}

/** The message that a client has at the end of a stream. Throws its errors. */
export async function lastOf(stream: ReadableStream<UIMessageChunk>): Promise<UIMessage | undefined> {
  let last: UIMessage | undefined
  for await (const message of readUIMessageStream({ stream, terminateOnError: true })) last = message
  return last
}

export const uiTextOf = (message: Pick<UIMessage, 'parts'> | undefined): string =>
  (message?.parts ?? []).flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('|')

/** Returns the message without what only a client has. */
export const plainMessages = (messages: readonly UIMessage[]): UIMessage[] => JSON.parse(JSON.stringify(messages))
