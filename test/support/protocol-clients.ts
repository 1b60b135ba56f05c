/** Clients of protocols that stream, in one form, for tests that cut, stop and kill at random. */
import type { Message } from '@ag-ui/client'
import type { ChatTransport, UIMessage, UIMessageChunk } from 'ai'
import { readUIMessageStream } from 'ai'
import { Page } from './ag-ui-page.ts'
import type { TestServer } from './server.ts'
import { KEY } from './server.ts'
import { plainMessages, socketTransportOf, storedMessages, transportOf } from './ui-chat.ts'

export type ProtocolClient = {
  /** Sends a message, and resolves when its stream has ended, however. */
  readonly say: (text: string, onEvent?: () => void) => Promise<void>
  /** Loses the connection. */
  readonly leave: () => void
  /** Follows what it has asked for last, and resolves as `say` does. */
  readonly comeBack: () => Promise<void>
  /** Asks for it in the words of the protocol. Rejects if that is refused. */
  readonly stop: () => Promise<void>
  /** The messages that it has, without reasoning: that of an answer which was stopped is shown live only. */
  readonly shown: () => readonly unknown[]
  /** The messages that a new client gets, in the same form. */
  readonly stored: () => Promise<readonly unknown[]>
  /** What the agent has said since the last message of the user. */
  readonly answer: () => string
}

async function post(url: string, body: object): Promise<void> {
  const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
  const { status } = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
  if (status !== 200) throw new Error(`${url}: ${status}`)
}

const withoutReasoning = (messages: readonly Message[]): readonly Message[] =>
  messages.filter(({ role }) => role !== 'reasoning')

/** A message in which the agent says nothing is not stored. */
const withoutReasoningParts = (messages: readonly UIMessage[]): readonly UIMessage[] =>
  plainMessages(messages)
    .map((message) => ({ ...message, parts: message.parts.filter(({ type }) => type !== 'reasoning') }))
    .filter(({ parts }) => parts.some(({ type }) => type !== 'step-start'))

const lost = (): DOMException => new DOMException('The connection was lost.', 'AbortError')

/** The client of AG-UI leaves a promise rejected when its connection is lost, unless it has ended it itself. */
async function fetchOrAbort(url: string, init: RequestInit): Promise<Response> {
  const response = await fetch(url, init).catch(() => {
    throw lost()
  })
  const chunks = async function* () {
    try {
      yield* response.body ?? []
    } catch {
      throw lost()
    }
  }
  return new Response(ReadableStream.from(chunks()), response)
}

export function agUiClient({ url }: TestServer, threadId: string): ProtocolClient {
  const page = new Page(url, threadId, KEY)
  page.agent.fetch = fetchOrAbort
  const follow = async (onEvent?: () => void) => {
    // Its error is an event, or none has come.
    await page.run({}, onEvent).catch(() => {})
  }
  return {
    async say(content, onEvent) {
      page.agent.addMessage({ id: crypto.randomUUID(), role: 'user', content })
      await follow(onEvent)
    },
    leave: () => page.agent.abortRun(),
    comeBack: () => follow(),
    stop: () => post(`${url}/ag-ui/coder/stop`, { threadId }),
    shown: () => withoutReasoning(page.agent.messages),
    async stored() {
      const other = new Page(url, threadId, KEY)
      await other.run()
      return withoutReasoning(other.agent.messages)
    },
    answer() {
      const { messages } = page.agent
      const own = messages.slice(messages.findLastIndex(({ role }) => role === 'user') + 1)
      return own.flatMap(({ role, content }) => (role === 'assistant' && content ? [content] : [])).join('|')
    },
  }
}

const CODER = { profile: 'coder' }

export const aiSdkClient = ({ url }: TestServer, id: string): ProtocolClient =>
  uiClient(url, id, transportOf({ url, body: CODER }))

export function aiSdkSocketClient({ url }: TestServer, id: string): ProtocolClient {
  const transport = socketTransportOf({ url, body: CODER })
  // An abort of its stream would stop the agent.
  return { ...uiClient(url, id, transport), leave: () => transport.close() }
}

function uiClient(url: string, id: string, transport: ChatTransport<UIMessage>): ProtocolClient {
  const messages: UIMessage[] = []
  let connection = new AbortController()
  const send = () => {
    connection = new AbortController()
    const { signal: abortSignal } = connection
    const trigger = 'submit-message' as const
    return transport.sendMessages({ chatId: id, messages, trigger, messageId: undefined, abortSignal })
  }
  const read = async (opening: Promise<ReadableStream<UIMessageChunk>>, onEvent?: () => void) => {
    try {
      const counting = new TransformStream<UIMessageChunk, UIMessageChunk>({
        transform(chunk, controller) {
          onEvent?.()
          controller.enqueue(chunk)
        },
      })
      const stream = (await opening).pipeThrough(counting)
      let last: UIMessage | undefined
      for await (const message of readUIMessageStream({ stream, onError() {} })) last = message
      if (messages.at(-1)?.role === 'assistant') messages.pop()
      if (last) messages.push(last)
    } catch {
      // The connection was lost: it comes back.
    }
  }
  const follow = async () => (await transport.reconnectToStream({ chatId: id })) ?? (await send())
  return {
    async say(text, onEvent) {
      messages.push({ id: crypto.randomUUID(), role: 'user', parts: [{ type: 'text', text }] })
      await read(send(), onEvent)
    },
    leave: () => connection.abort(),
    async comeBack() {
      if (messages.at(-1)?.role === 'assistant') messages.pop()
      await read(follow())
    },
    stop: () => post(`${url}/ai/chat/${id}/stop`, {}),
    shown: () => withoutReasoningParts(messages),
    stored: async () => withoutReasoningParts(await storedMessages({ url, id })),
    answer() {
      const last = messages.at(-1)
      const parts = last?.role === 'assistant' ? last.parts : []
      return parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('|')
    },
  }
}
