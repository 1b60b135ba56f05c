import { once } from 'node:events'
import { get } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { EventLog } from '../../src/events/event-log.ts'
import { connectAs } from '../support/socket.ts'
import type { SocketClient } from '../support/socket.ts'
import { message, toolResult } from '../events/fixtures.ts'
import type { HttpBench } from './fixtures.ts'
import { KEY, setHttp } from './fixtures.ts'

let http: HttpBench
let url: string
beforeEach(async () => {
  http = await setHttp()
  url = await http.listen()
})
afterEach(() => http[Symbol.asyncDispose]())

const headers = { authorization: `Bearer ${KEY}` }

async function converse(): Promise<{ id: string; log: EventLog }> {
  const id = await http.create()
  return { id, log: (await http.bench.manager.get(id)).log }
}

async function connect(path: string): Promise<SocketClient> {
  const socket = await connectAs(url, path, { headers })
  await socket.until(({ type }) => type === 'ready')
  return socket
}

test('a reader that is too slow is cut off as lagged, has a gapless beginning, and comes back for the rest', async () => {
  const { id, log } = await converse()
  const [slow, firehose] = [await connect(`/conversations/${id}/ws`), await connect('/firehose')]
  for (const { ws } of [slow, firehose]) ws.pause()
  const large = 'x'.repeat(200_000)
  for (let i = 0; i < 200; i++) await log.append([toolResult(large)])
  for (const [socket, path] of [
    [slow, `/conversations/${id}/ws?after_seq=`],
    [firehose, '/firehose?cursor='],
  ] as const) {
    socket.ws.resume()
    expect(await socket.closed).toBe(4000)
    expect(socket.frames.at(-1)).toEqual({ type: 'lagged' })
    const seqs = socket.frames.flatMap(({ seq }) => seq ?? [])
    expect(seqs).toEqual(seqs.map((_, i) => i + 2))
    expect(seqs.length).toBeLessThan(150)
    const back = await connectAs(url, path + (socket.frames.at(-2).cursor ?? seqs.at(-1)), { headers })
    await back.until(({ seq }) => seq === log.head)
    expect(back.frames.flatMap(({ seq }) => seq ?? [])).toEqual(
      Array.from({ length: log.head - seqs.at(-1)! }, (_, i) => seqs.at(-1)! + 1 + i),
    )
    back.close()
  }
})

test('who goes away leaves no subscriber behind, however it went', async () => {
  const { id, log } = await converse()
  const { firehose } = http.bench
  const before = log.subscriberCount
  const paths = [`/conversations/${id}/ws?deltas=true`, `/conversations/${id}/ws?after_seq=0`, '/firehose']
  const sockets = await Promise.all(Array.from({ length: 30 }, (_, i) => connect(paths[i % 3]!)))
  const streams = await Promise.all(
    [`/conversations/${id}/events/stream`, '/firehose?cursor=0'].map(async (path) => {
      const abort = new AbortController()
      await fetch(url + path, { headers, signal: abort.signal })
      return abort
    }),
  )
  await log.append([message('for all of them')])
  await Promise.all(sockets.map(({ until }) => until(({ type }) => type === 'UserMessage')))
  await expect.poll(() => log.subscriberCount).toBe(before + 21)
  await expect.poll(() => firehose.subscriberCount).toBe(11)
  for (const [i, { ws }] of sockets.entries()) {
    if (i % 2 === 0) ws.close()
    else ws.terminate()
  }
  for (const abort of streams) abort.abort()
  await expect.poll(() => log.subscriberCount).toBe(before)
  await expect.poll(() => firehose.subscriberCount).toBe(0)
})

test('an HTTP client that offers another protocol is answered as if it had not', async () => {
  const offers = { connection: 'Upgrade, HTTP2-Settings', upgrade: 'h2c', 'http2-settings': 'AAMAAABkAAQAoAAAAAIAAAAA' }
  const [response] = (await once(get(`${url}/alive`, { headers: offers }), 'response')) as [IncomingMessage]
  expect(response.resume().statusCode).toBe(200)
})

test('an upgrade that was never one asks for the key as any request does', async () => {
  const pretended = { authorization: '', connection: 'close', upgrade: 'websocket' }
  for (const path of ['/firehose', `/conversations/${await http.create()}/ws`]) {
    expect((await http.call('GET', path, undefined, pretended)).status).toBe(401)
    expect((await fetch(url + path)).status).toBe(401)
  }
})
