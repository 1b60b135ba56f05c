/** Two ends of a real connection with a program between them that changes, repeats and records bytes. */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { connect, createServer } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import type { Channel } from '../../src/cluster/channel.ts'
import { admit, deriveClusterKey, greet } from '../../src/cluster/handshake.ts'

const KEY = deriveClusterKey('a data key')

/** The bytes of the asking end go through `change`, one write after the other. */
async function meet({ key = KEY, change }: { key?: Buffer; change?: (chunk: Buffer, at: number) => Buffer }) {
  const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const accepted = once(server, 'connection').then(([socket]) => admit(socket as Socket, KEY, 7))
  accepted.catch(() => {}) // the test looks at it
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const write = socket.write.bind(socket)
  let at = 0
  if (change) socket.write = ((chunk: Buffer, done?: () => void) => write(change(chunk, at++), done)) as typeof write
  void accepted.finally(() => server.close()).catch(() => {})
  return { asked: accepted, asking: greet(socket, key, 7) }
}

const ended = async (channel: Channel): Promise<Buffer | 'destroyed'> => await buffer(channel).catch(() => 'destroyed')

test('both directions carry all bytes, and an end is authenticated', async () => {
  const { asked, asking } = await meet({})
  const [there, here] = await Promise.all([asked, asking])
  const [question, answer] = [randomBytes(300_000), randomBytes(200_000)]
  here.end(question)
  there.end(answer)
  expect((await buffer(there)).equals(question)).toBe(true)
  expect((await buffer(here)).equals(answer)).toBe(true)
})

test('an end with another key is refused', async () => {
  const { asking } = await meet({ key: deriveClusterKey('another key') })
  await expect(asking).rejects.toThrow('does not have the key')
})

test.each([
  ['changed', (chunk: Buffer) => Buffer.concat([chunk.subarray(0, -1), Buffer.of(chunk[chunk.length - 1]! ^ 1)])],
  ['repeated', (chunk: Buffer) => Buffer.concat([chunk, chunk])],
])('a frame that was %s destroys the connection', async (_, forge) => {
  // The first two writes are the handshake.
  const { asked, asking } = await meet({ change: (chunk, at) => (at === 2 ? forge(chunk) : chunk) })
  const [there, here] = await Promise.all([asked, asking])
  here.on('error', () => {})
  here.write('text of a request')
  expect(await ended(there)).toBe('destroyed')
})

test('writes that wait behind another one are one frame', async () => {
  let writes = 0
  const { asked, asking } = await meet({ change: (chunk) => (writes++, chunk) })
  const [there, here] = await Promise.all([asked, asking])
  const before = writes
  here.write('5\r\n')
  for (const piece of ['hello', '\r\n', '0\r\n', '\r\n']) here.write(piece)
  here.end()
  there.end()
  expect(String(await buffer(here))).toBe('')
  expect(String(await buffer(there))).toBe('5\r\nhello\r\n0\r\n\r\n')
  expect(writes - before).toBe(2)
})
