/**
 * The UI message stream over a WebSocket, as `WebSocketChatTransport` speaks it: `send` and `resume` are requests to this server, with the
 * permissions of the key of the socket, and their chunks are numbered frames. `abort` stops the agent. A socket has many requests at a time.
 */
import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { InnerConnections } from '../../http/local/inner-connections.ts'
import type { LocalFetch } from '../../http/local/local-fetch.ts'
import type { SocketConnection } from '../../http/socket/connection.ts'
import { ComplexJson, parseUntrustedJson } from '../../lib/json/untrusted-json.ts'
import { dataOfEvents, fetchAs } from '../shared/socket-requests.ts'

export type ChatSocketDeps = { readonly innerConnections: InnerConnections }

const MAX_REQUESTS = 16

const RequestId = z.string().min(1).max(200)
const ChatId = z.string().min(1).max(200)
const ClientFrame = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('send'), requestId: RequestId, id: ChatId, body: z.looseObject({}).optional() }),
  // The number of a chunk says nothing after a reconnect: pieces of text are cut elsewhere.
  z.looseObject({ type: z.literal('resume'), requestId: RequestId, id: ChatId, lastSequence: z.null().optional() }),
  z.looseObject({ type: z.literal('abort'), requestId: RequestId }),
])
type ClientFrame = z.infer<typeof ClientFrame>
type ChatFrame = Exclude<ClientFrame, { type: 'abort' }>

/** Resolves when the client has disconnected and its last `abort` is done. Otherwise its agents work on. */
export async function serveChats(
  socket: SocketConnection,
  request: FastifyRequest,
  { innerConnections }: ChatSocketDeps,
): Promise<void> {
  await using local = fetchAs(request, innerConnections)
  const chats = new SocketChats(socket, local)
  for await (const frame of socket.frames) await chats.take(frame)
  await chats.end()
}

/** The error of a frame that names no request has an empty `requestId`, which clients ignore. */
const errorFrame = (errorText: string, requestId = '') => ({ type: 'error', requestId, errorText })

/** `beginning` resolves when the agent has the request, or it was refused. */
type RunningRequest = {
  readonly chatId: string
  readonly beginning: PromiseWithResolvers<void>
  readonly reading: AbortController
  stopping: Promise<void> | undefined
}

class SocketChats {
  readonly #socket: SocketConnection
  readonly #local: LocalFetch
  readonly #running = new Map<string, RunningRequest>()

  constructor(socket: SocketConnection, local: LocalFetch) {
    this.#socket = socket
    this.#local = local
  }

  /** Never rejects. */
  async take(text: string): Promise<void> {
    const { frame, fault, requestId } = parseFrame(text)
    if (!frame) return await this.#socket.send(errorFrame(fault, requestId))
    const running = this.#running.get(frame.requestId)
    if (frame.type === 'abort') {
      if (running) running.stopping ??= this.#stop(running)
      return
    }
    if (running) return await this.#socket.send(errorFrame('Another request has this requestId.', frame.requestId))
    if (this.#running.size >= MAX_REQUESTS) {
      const words = `A socket has at most ${MAX_REQUESTS} requests at a time. Wait for the end of one.`
      return await this.#socket.send(errorFrame(words, frame.requestId))
    }
    void this.#answer(frame)
  }

  /** Ends the reading. What a client has aborted is stopped, although it has left. */
  async end(): Promise<void> {
    const all = [...this.#running.values()]
    for (const { reading, stopping } of all) if (!stopping) reading.abort()
    await Promise.all(all.flatMap(({ stopping }) => stopping ?? []))
  }

  async #answer(frame: ChatFrame): Promise<void> {
    const { requestId, id: chatId } = frame
    const beginning = Promise.withResolvers<void>()
    const running: RunningRequest = { chatId, beginning, reading: new AbortController(), stopping: undefined }
    this.#running.set(requestId, running)
    try {
      const response = await this.#request(frame, running.reading.signal)
      beginning.resolve()
      await this.#send(requestId, response)
    } catch {
      if (!running.reading.signal.aborted) await this.#socket.send(errorFrame(CUT_OFF, requestId))
    } finally {
      beginning.resolve()
      this.#running.delete(requestId)
    }
  }

  async #request(frame: ChatFrame, signal: AbortSignal): Promise<Response> {
    if (frame.type === 'resume') return await this.#fetch(`${pathOf(frame.id)}/stream`, { signal })
    const { id, messages, trigger, messageId } = frame
    return await this.#fetch('/ai/chat', posting({ ...frame.body, id, messages, trigger, messageId }, signal))
  }

  async #send(requestId: string, response: Response): Promise<void> {
    if (response.status === 204) return await this.#socket.send({ type: 'no-active', requestId })
    if (!response.ok) return await this.#socket.send(errorFrame(await response.text(), requestId))
    await this.#socket.send({ type: 'start', requestId })
    let sequence = 0
    let isWhole = false
    for await (const data of dataOfEvents(response)) {
      if (data === '[DONE]') isWhole = true
      else {
        const chunk: unknown = JSON.parse(data)
        // After an error nothing comes.
        isWhole ||= Object(chunk)['type'] === 'error'
        await this.#socket.send({ type: 'chunk', requestId, sequence: sequence++, chunk })
      }
    }
    await this.#socket.send(isWhole ? { type: 'end', requestId } : errorFrame(CUT_OFF, requestId))
  }

  /** The agent may not have begun yet. A key that may not stop it only stops reading. Never rejects. */
  async #stop({ chatId, beginning, reading }: RunningRequest): Promise<void> {
    await beginning.promise
    const response = await this.#fetch(`${pathOf(chatId)}/stop`, posting({})).catch(() => undefined)
    if (!response?.ok) reading.abort()
  }

  #fetch(path: string, init: RequestInit): Promise<Response> {
    return this.#local.fetch(this.#local.baseUrl + path, init)
  }
}

const CUT_OFF = 'The answer was cut off. Reconnect to read it.'

const pathOf = (chatId: string) => `/ai/chat/${encodeURIComponent(chatId.toWellFormed())}`

const posting = (body: object, signal?: AbortSignal): RequestInit => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
  ...(signal && { signal }),
})

type ParsedFrame =
  | { readonly frame: ClientFrame; readonly fault?: never; readonly requestId?: never }
  | { readonly frame?: never; readonly fault: string; readonly requestId?: string | undefined }

function parseFrame(text: string): ParsedFrame {
  try {
    const value: unknown = parseUntrustedJson(text)
    const { data } = ClientFrame.safeParse(value)
    if (data) return { frame: data }
    const { data: requestId } = RequestId.safeParse(Object(value)['requestId'])
    return { fault: 'Send frames of the types send, resume without lastSequence, and abort.', requestId }
  } catch (error) {
    return { fault: error instanceof ComplexJson ? error.message : 'The frame is not JSON.' }
  }
}
