/** Requests as bytes on a socket, for what no HTTP client would send. */
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { setImmediate as yieldToLoop, setInterval as every } from 'node:timers/promises'

export function openSocket(url: string): Socket {
  const { port, hostname } = new URL(url)
  // What is still sent when the server has ended the connection.
  return connect(Number(port), hostname).on('error', () => {})
}

/** All that the server says to this until it ends the connection; the client does not end its side. */
export async function sayTo(url: string, request: string): Promise<string> {
  const socket = openSocket(url)
  socket.write(request)
  return await text(socket)
}

/** Sends the beginning, then a byte now and then until the server answers; returns what it said until it ended the connection. */
export async function drip(url: string, beginning: string): Promise<string> {
  const socket = openSocket(url)
  socket.write(beginning)
  const over = new AbortController()
  let said = ''
  socket.setEncoding('utf8').on('data', (text: string) => {
    said += text
    over.abort()
  })
  // A byte that crosses the end of the connection is an error of the socket, and not of the answer.
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  void closed.then(() => over.abort())
  try {
    for await (const _ of every(40, undefined, { signal: over.signal })) {
      // What the server has said by now is read first.
      await yieldToLoop()
      if (!over.signal.aborted) socket.write('x')
    }
  } catch {
    // It is over.
  }
  await closed
  return said
}

export type RawAnswer = { readonly status: number; readonly head: string; readonly body: string }

/** The answers in what was said, those of status 100 among them. Only with `Content-Length`. */
export function answersIn(said: string): RawAnswer[] {
  const answers: RawAnswer[] = []
  for (let rest = said; rest !== '';) {
    const at = rest.indexOf('\r\n\r\n')
    const head = rest.slice(0, at)
    const length = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0)
    const status = Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1])
    answers.push({ status, head, body: rest.slice(at + 4, at + 4 + length) })
    rest = rest.slice(at + 4 + length)
  }
  return answers
}
