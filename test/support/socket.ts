/** A WebSocket client that keeps what it is sent. */
import { WebSocket } from 'ws'
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

/** What a client is told whose upgrade is refused. */
export class RefusedUpgrade extends Error {
  readonly status: number
  readonly body: any // eslint-disable-line typescript/no-explicit-any
  constructor(status: number, body: string) {
    super(`${status} ${body}`)
    this.status = status
    this.body = JSON.parse(body)
  }
}

/** With the key in the header, as clients that can set one. Resolves when the connection is made; throws a `RefusedUpgrade`. */
export const connect = (url: string, path: string, { headers = {}, ...options }: SocketOptions = {}) =>
  connectAs(url, path, { headers: { authorization: `Bearer ${KEY}`, ...headers }, ...options })

/** As a browser, which can set no header: the key is the first frame. */
export async function connectAsBrowser(url: string, path: string, headers: Record<string, string> = {}) {
  const socket = await connectAs(url, path, { headers })
  socket.say({ type: 'auth', token: KEY })
  return socket
}

/** Without a key. */
export async function connectAs(url: string, path: string, options: SocketOptions): Promise<SocketClient> {
  const ws = new WebSocket(url.replace('http', 'ws') + path, { perMessageDeflate: false, ...options })
  const frames: Frame[] = []
  const waiting = new Set<() => void>()
  const wakeAll = () => {
    for (const wake of Array.from(waiting)) wake()
  }
  const { promise: closed, resolve: onClose } = Promise.withResolvers<number>()
  let isOver = false
  ws.on('message', (data: Buffer) => {
    frames.push(JSON.parse(data.toString()))
    wakeAll()
  })
  ws.on('close', (code) => {
    isOver = true
    onClose(code)
    wakeAll()
  })
  await opened(ws)
  return {
    frames,
    ws,
    closed,
    say: (frame) => ws.send(typeof frame === 'string' ? frame : JSON.stringify(frame)),
    close: () => ws.terminate(),
    async until(fits, timeoutMs = 20_000) {
      const deadline = Date.now() + timeoutMs
      for (let at = 0; ;) {
        for (; at < frames.length; at++) if (fits(frames[at])) return frames[at]
        if (isOver || Date.now() >= deadline)
          throw new Error(`no such frame; seen: ${frames.map((frame) => frame.type).join(' ')}`)
        await new Promise<void>((resolve) => {
          const wake = () => {
            waiting.delete(wake)
            clearTimeout(timer)
            resolve()
          }
          const timer = setTimeout(wake, Math.max(1, deadline - Date.now()))
          waiting.add(wake)
        })
      }
    },
  }
}

async function opened(ws: WebSocket): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  ws.on('open', resolve)
  // Also of a connection that breaks later, which is told by `close`.
  ws.on('error', reject)
  ws.on('unexpected-response', (_request, response) => {
    let body = ''
    response.setEncoding('utf8').on('data', (text: string) => (body += text))
    response.on('end', () => reject(new RefusedUpgrade(response.statusCode!, body)))
  })
  await promise
}
