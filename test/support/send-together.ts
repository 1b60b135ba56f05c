/** Requests that arrive at several servers at the same time: each is complete but for its last byte, and then all get theirs. */
import { once } from 'node:events'
import { connect } from 'node:net'
import type { Answer, TestServer } from './server.ts'
import { KEY } from './server.ts'
import type { Random } from './random.ts'

export type RacingRequest = {
  readonly at: Pick<TestServer, 'url'>
  readonly method: string
  readonly path: string
  readonly body?: object
  readonly headers?: Readonly<Record<string, string>>
}

const END_OF_HEAD = '\r\n\r\n'

/** Sends the last bytes in an order of the random numbers. Resolves to the answers, in the order of the requests. */
export async function sendTogether(
  random: Random,
  requests: readonly RacingRequest[],
): Promise<Omit<Answer, 'headers'>[]> {
  const opened = await Promise.all(requests.map(begin))
  const remaining = [...opened]
  while (remaining.length > 0) remaining.splice(random.below(remaining.length), 1)[0]!.finish()
  return await Promise.all(opened.map(({ answer }) => answer()))
}

async function begin({ at, method, path, body, headers = {} }: RacingRequest) {
  const { hostname, port } = new URL(at.url)
  const content = body === undefined ? '' : JSON.stringify(body)
  const fields = {
    host: hostname,
    connection: 'close',
    authorization: `Bearer ${KEY}`,
    ...(body !== undefined && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(content) }),
    ...headers,
  }
  const lines = Object.entries(fields).flatMap(([name, value]) => (value === '' ? [] : [`${name}: ${value}`]))
  const message = Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('\r\n')}${END_OF_HEAD}${content}`)
  const socket = connect(Number(port), hostname).setNoDelay(true)
  await once(socket, 'connect')
  socket.write(message.subarray(0, -1))
  const answer = async () => {
    let received = ''
    // A stream has no end: its head is enough.
    for await (const chunk of socket.setEncoding('utf8')) {
      received += String(chunk)
      if (/^content-type: text\/event-stream/im.test(received)) break
    }
    const [head = '', text = ''] = received.split(END_OF_HEAD)
    const status = Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1])
    return { status, body: /^content-type: application\/json/im.test(head) ? JSON.parse(text) : undefined }
  }
  return { finish: () => socket.write(message.subarray(-1)), answer }
}
