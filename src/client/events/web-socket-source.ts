/**
 * Event streams over WebSockets, for pages in a browser: over HTTP/1.1 a browser opens six connections to a server, and
 * each event stream keeps one. A ticket authorizes each WebSocket, because a browser cannot send a header with it.
 */
import { pathOf, queryOf } from '../request/url.ts'
import { AgentServerError } from '../request/agent-server-error.ts'
import { delayAfter, sleep } from '../request/delay.ts'
import { foreign } from '../request/response-error.ts'
import type { TransportOptions } from '../request/transport.ts'
import { Transport } from '../request/transport.ts'
import type { StreamFrame, StreamRequest, StreamSource } from './stream-source.ts'
import { MAX_SILENCE_MS, silentStream } from './stream-source.ts'

/** What is used of the `WebSocket` of browsers. */
type Socket = {
  readonly addEventListener: (
    type: 'message' | 'error' | 'close',
    listener: (event: { readonly data?: unknown }) => void,
  ) => void
  readonly close: () => void
}

export type WebSocketSourceOptions = TransportOptions & {
  /** Default: the global `WebSocket`. */
  readonly WebSocket?: (new (url: string) => Socket) | undefined
  /**
   * Returns a ticket for one conversation, or for the firehose without an id. Default: asks the server, with the key or
   * the headers of these options. A page without a key asks its own backend here.
   */
  readonly ticket?: ((conversationId: string | undefined, signal: AbortSignal) => Promise<string>) | undefined
  /** How long a connection may be silent, in milliseconds: the server sends a frame at least every 15 seconds. */
  readonly maxSilenceMs?: number | undefined
}

/** Frames that a slow reader has not taken, in characters. Above that the connection ends, and the next one continues. */
const MAX_UNREAD_CHARS = 16 * 1024 * 1024

const CONVERSATION_STREAM = /^\/conversations\/([^/]+)\/events\/stream$/

/**
 * A `streamSource` for `createClient`. Throws the `AgentServerError` of a ticket that was refused, `connection_failed`
 * for a WebSocket that cannot be opened, and `invalid_argument` where there is no `WebSocket`.
 */
export function webSocketSource(options: WebSocketSourceOptions): StreamSource {
  const transport = new Transport(options)
  const { maxSilenceMs = MAX_SILENCE_MS } = options

  async function* connection({ path, cursor, query, signal, maxRetries }: StreamRequest): AsyncGenerator<StreamFrame> {
    const encodedId = CONVERSATION_STREAM.exec(path)?.[1]
    const id = encodedId === undefined ? undefined : decodeURIComponent(encodedId)
    const ticket = await (options.ticket?.(id, signal) ?? ticketOf(transport, id, { signal, maxRetries }))
    signal.throwIfAborted()
    const route = id === undefined ? path : pathOf('/conversations/{id}/ws', { id })
    const position = id === undefined ? { cursor } : { after_seq: cursor }
    const url = transport.urlOf(route + queryOf({ ...query, ...position, ticket })).replace(/^http/, 'ws')
    yield* framesOf(open(url, options.WebSocket), { signal, maxSilenceMs, isFirehose: id === undefined })
  }

  return async function* (request) {
    for (let failures = 1; ; failures++) {
      let isOpen = false
      try {
        for await (const frame of connection(request)) {
          isOpen = true
          yield frame
        }
        return
      } catch (error) {
        request.signal.throwIfAborted()
        if (isOpen || !(error instanceof UnopenedSocket)) throw error
        if (!options.ticket) await requireReadable(transport, request)
        if (failures > request.maxRetries) throw error
        await sleep(delayAfter(failures), request.signal)
      }
    }
  }
}

async function ticketOf(
  transport: Transport,
  conversation_id: string | undefined,
  options: Pick<StreamRequest, 'signal' | 'maxRetries'>,
): Promise<string> {
  const body = JSON.stringify(conversation_id === undefined ? { firehose: true } : { conversation_id })
  const headers = { 'content-type': 'application/json' }
  const request = { method: 'POST', path: '/stream-tickets', headers, body, isRepeatable: true, ...options }
  return await transport.send(request, async (response) => {
    const reply: unknown = await response.json().catch(() => undefined)
    if (isTicket(reply)) return reply.ticket
    throw foreign(response, '')
  })
}

/** Throws what a browser does not say of a WebSocket that was refused: that the conversation is not there any more. */
async function requireReadable(transport: Transport, { path, signal }: StreamRequest): Promise<void> {
  const id = CONVERSATION_STREAM.exec(path)?.[1]
  if (id === undefined) return
  const request = { method: 'GET', path: `/conversations/${id}`, signal, isRepeatable: true, maxRetries: 0 }
  try {
    await transport.send(request, (response) => response.body?.cancel())
  } catch (error) {
    // A server that is away, or that starts, says nothing about the conversation.
    if (error instanceof AgentServerError && (error.status === undefined || error.status >= 500)) return
    throw error
  }
}

const isTicket = (reply: unknown): reply is { readonly ticket: string } =>
  typeof reply === 'object' && reply !== null && 'ticket' in reply && typeof reply.ticket === 'string'

function open(url: string, WebSocketClass: WebSocketSourceOptions['WebSocket']): Socket {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- browsers, Node, Deno and Bun have it
  const WebSocket = WebSocketClass ?? (globalThis as unknown as Pick<WebSocketSourceOptions, 'WebSocket'>).WebSocket
  if (!WebSocket) throw new AgentServerError('invalid_argument', 'There is no WebSocket here. Pass one as WebSocket.')
  return new WebSocket(url)
}

type Reading = { readonly signal: AbortSignal; readonly maxSilenceMs: number; readonly isFirehose: boolean }

/** Yields the frames until the connection ends. Throws if it never opens, is silent for too long, or sends no JSON. */
async function* framesOf(socket: Socket, { signal, maxSilenceMs, isFirehose }: Reading): AsyncGenerator<StreamFrame> {
  const unreadTexts: string[] = []
  let unreadChars = 0
  let hasEnded = false
  let fault: AgentServerError | undefined
  let wake = () => {}
  const end = (error?: AgentServerError) => {
    if (hasEnded) return
    hasEnded = true
    fault = error
    socket.close()
    wake()
  }
  let isReady = false
  let silence = setTimeout(() => end(silentStream()), maxSilenceMs)
  socket.addEventListener('message', ({ data }) => {
    clearTimeout(silence)
    if (hasEnded) return
    silence = setTimeout(() => end(silentStream()), maxSilenceMs)
    if (typeof data !== 'string') return end(unreadable())
    isReady = true
    unreadTexts.push(data)
    unreadChars += data.length
    wake()
    if (unreadChars > MAX_UNREAD_CHARS) end()
  })
  for (const type of ['error', 'close'] as const)
    socket.addEventListener(type, () => end(isReady ? undefined : new UnopenedSocket()))
  const stop = () => end()
  signal.addEventListener('abort', stop, { once: true })
  try {
    for (;;) {
      signal.throwIfAborted()
      const text = unreadTexts.shift()
      if (text !== undefined) {
        unreadChars -= text.length
        yield toFrame(text, isFirehose)
      } else if (hasEnded) {
        if (fault) throw fault
        return
      } else {
        const { promise, resolve } = Promise.withResolvers<void>()
        wake = resolve
        await promise
      }
    }
  } finally {
    clearTimeout(silence)
    signal.removeEventListener('abort', stop)
    end()
  }
}

/** `ready`, `reached` and `heartbeat` say where the stream is; all other frames are data. */
function toFrame(text: string, isFirehose: boolean): StreamFrame {
  const { cursor, ...data } = parse(text)
  switch (data['type']) {
    case 'ready':
    case 'reached':
      return { cursor: textOf(cursor ?? data['after_seq']) }
    case 'heartbeat':
      return { cursor: undefined }
    default:
      return { cursor: textOf(isFirehose ? cursor : data['seq']), data }
  }
}

const textOf = (position: unknown): string | undefined => {
  if (typeof position === 'string') return position
  return typeof position === 'number' ? String(position) : undefined
}

function parse(text: string): Record<string, unknown> {
  try {
    const frame: unknown = JSON.parse(text)
    if (typeof frame === 'object' && frame !== null) return { ...frame }
  } catch {
    // as below
  }
  throw unreadable()
}

const unreadable = () =>
  new AgentServerError('unexpected_response', 'The WebSocket sent a frame that is not a JSON object.')

/** A browser does not say why. */
class UnopenedSocket extends AgentServerError {
  constructor() {
    super(
      'connection_failed',
      'The WebSocket could not be opened. Check that the proxies pass WebSockets, and OPENHANDS_CORS_ORIGINS.',
    )
  }
}
