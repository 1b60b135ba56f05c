/** A WebSocket client that keeps what it is sent. */
import { WebSocket } from 'ws'
import { createFrames } from './frames.ts'
import { KEY } from './server.ts'

export type Frame = any // eslint-disable-line typescript/no-explicit-any

export type SocketClient = {
  readonly frames: readonly Frame[]
  readonly ws: WebSocket
  readonly say: (frame: object | string) => void
  /** The first frame, seen already or to come, that fits. Throws when the socket closes without one. */
  readonly until: (fits: (frame: Frame) => boolean, timeoutMs?: number) => Promise<Frame>
  /** Resolves to the code, whoever closed it. */
  readonly closed: Promise<number>
  readonly close: () => void
}

export type SocketOptions = { readonly headers?: Record<string, string>; readonly autoPong?: boolean }

/** What a client receives if its upgrade is refused. */
export class RefusedUpgrade extends Error {
  readonly status: number
  readonly body: any // eslint-disable-line typescript/no-explicit-any
  constructor(status: number, body: string) {
    super(`${status} ${body}`)
    this.status = status
    // Not every protocol answers in JSON.
    this.body = body.startsWith('{') ? JSON.parse(body) : body
  }
}

/**
 * Sends the key in the header, as clients that can set one. Resolves when the connection is made; throws a
 * `RefusedUpgrade`.
 */
export const connect = (url: string, path: string, { headers = {}, ...options }: SocketOptions = {}) =>
  connectAs(url, path, { headers: { authorization: `Bearer ${KEY}`, ...headers }, ...options })

/** Connects as a browser, which can set no header: the key is the first frame. */
export async function connectAsBrowser(url: string, path: string, headers: Record<string, string> = {}) {
  const socket = await connectAs(url, path, { headers })
  socket.say({ type: 'auth', token: KEY })
  return socket
}

/** Sends no key. */
export async function connectAs(url: string, path: string, options: SocketOptions): Promise<SocketClient> {
  const ws = new WebSocket(url.replace('http', 'ws') + path, { perMessageDeflate: false, ...options })
  const frames = createFrames<Frame>(({ type }) => type)
  const { promise: closed, resolve: onClose } = Promise.withResolvers<number>()
  ws.on('message', (data: Buffer) => {
    frames.add(JSON.parse(data.toString()))
  })
  ws.on('close', (code) => {
    onClose(code)
    frames.end()
  })
  await opened(ws)
  return {
    frames: frames.seen,
    ws,
    closed,
    say: (frame) => ws.send(typeof frame === 'string' ? frame : JSON.stringify(frame)),
    close: () => ws.terminate(),
    until: frames.until,
  }
}

async function opened(ws: WebSocket): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  ws.on('open', resolve)
  // This also handles a connection that breaks later, which `close` reports.
  ws.on('error', reject)
  ws.on('unexpected-response', (_request, response) => {
    let body = ''
    response.setEncoding('utf8').on('data', (text: string) => (body += text))
    response.on('end', () => reject(new RefusedUpgrade(response.statusCode!, body)))
  })
  await promise
}
