import { once } from 'node:events'
import { get } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { connect as connectRaw } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { EventLog } from '../../src/events/event-log.ts'
import { MAX_FAILED_KEYS } from '../../src/http/guards/failed-keys.ts'
import { MAX_WAITING_PER_CLIENT } from '../../src/http/guards/unauthenticated-connections.ts'
import { connectAs } from '../support/socket.ts'
import type { SocketClient } from '../support/socket.ts'
import { message } from '../events/fixtures.ts'
import type { HttpBench } from './fixtures.ts'
import { KEY, MAX_FIREHOSE_STREAMS, MAX_STREAMS, setHttp } from './fixtures.ts'

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
  return { id, log: (await http.bench.manager.open(id)).log }
}

async function connect(path: string): Promise<SocketClient> {
  const socket = await connectAs(url, path, { headers })
  await socket.until(({ type }) => type === 'ready')
  return socket
}

test('a reader that is too slow is cut off as lagged, has a gapless beginning, and resumes with its cursor', async () => {
  const { id, log } = await converse()
  const [slow, firehose] = [await connect(`/conversations/${id}/ws`), await connect('/firehose')]
  for (const { ws } of [slow, firehose]) ws.pause()
  const large = 'x'.repeat(200_000)
  for (let i = 0; i < 100; i++) await log.append([message(large)])
  for (const [socket, path] of [
    [slow, `/conversations/${id}/ws?after_seq=`],
    [firehose, '/firehose?cursor='],
  ] as const) {
    socket.ws.resume()
    expect(await socket.closed).toBe(4000)
    expect(socket.frames.at(-1)).toEqual({ type: 'lagged' })
    const seqs = socket.frames.flatMap(({ seq }) => seq ?? [])
    expect(seqs).toEqual(seqs.map((_, i) => i + 2))
    expect(seqs.length).toBeLessThan(75)
    const back = await connectAs(url, path + (socket.frames.at(-2).cursor ?? seqs.at(-1)), { headers })
    await back.until(({ seq }) => seq === log.head)
    expect(back.frames.flatMap(({ seq }) => seq ?? [])).toEqual(
      Array.from({ length: log.head - seqs.at(-1)! }, (_, i) => seqs.at(-1)! + 1 + i),
    )
    back.close()
  }
})

test('an event stream whose reader is too slow ends with a frame that says so, as a whole response', async () => {
  const { id, log } = await converse()
  const { port, hostname } = new URL(url)
  const socket = connectRaw(Number(port), hostname).setEncoding('utf8')
  const path = `/conversations/${id}/events/stream`
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${KEY}\r\n\r\n`)
  await once(socket, 'readable')
  const large = 'x'.repeat(200_000)
  for (let i = 0; i < 100; i++) await log.append([message(large)])
  const said = await text(socket)
  expect(said.match(/^id: \d+$/gm)!.length).toBeLessThan(75)
  const last = 'event: lagged\ndata: {"type":"lagged"}\n\n'
  expect(said.slice(-100)).toMatch(new RegExp(`${last.length.toString(16)}\r\n${RegExp.escape(last)}\r\n0\r\n\r\n$`))
})

test('a disconnected client leaves no subscriber behind, however it disconnected', async () => {
  const { id, log } = await converse()
  const { firehose } = http.bench
  // From its first reader on, the firehose itself is a subscriber of each log.
  const first = await connect('/firehose')
  await expect.poll(() => firehose.subscriberCount).toBe(1)
  first.close()
  await expect.poll(() => firehose.subscriberCount).toBe(0)
  const before = log.subscriberCount
  const paths = [`/conversations/${id}/ws?deltas=true`, `/conversations/${id}/ws?after_seq=0`, '/firehose']
  const sockets = await Promise.all([...paths, ...paths, '/firehose?cursor=0'].map((path) => connect(path)))
  const streams = await Promise.all(
    [`/conversations/${id}/events/stream`, '/firehose?cursor=0'].map(async (path) => {
      const abort = new AbortController()
      // Kept: without a reference to it, the response may be collected, and its connection closed.
      const response = await fetch(url + path, { headers, signal: abort.signal })
      return { abort, response }
    }),
  )
  await log.append([message('for all of them')])
  await Promise.all(sockets.map(({ until }) => until(({ type }) => type === 'UserMessage')))
  await expect.poll(() => log.subscriberCount).toBe(before + 5)
  await expect.poll(() => firehose.subscriberCount).toBe(4)
  for (const [i, { ws }] of sockets.entries()) {
    if (i % 2 === 0) ws.close()
    else ws.terminate()
  }
  for (const { abort, response } of streams) {
    expect(response.status).toBe(200)
    abort.abort()
  }
  await expect.poll(() => log.subscriberCount).toBe(before)
  await expect.poll(() => firehose.subscriberCount).toBe(0)
})

test('streams and sockets per conversation are limited, and further ones are refused before or after the upgrade', async () => {
  const { id } = await converse()
  const path = `/conversations/${id}/ws`
  const sockets = await Promise.all(Array.from({ length: MAX_STREAMS }, () => connect(path)))
  await expect(connect(path)).rejects.toMatchObject({ status: 429, body: { error: 'too_many_streams' } })
  const late = await connectAs(url, path, {})
  late.say({ type: 'auth', token: KEY })
  expect(await late.closed).toBe(4429)
  expect(late.frames).toMatchObject([{ type: 'error', error: 'too_many_streams' }])
  for (const { close } of sockets) close()
  await expect.poll(() => connect(path).then(({ close }) => close(), String)).toBeUndefined()
})

test('the firehose has so many readers, of both kinds, and gives their places back', async () => {
  const sockets = await Promise.all(Array.from({ length: MAX_FIREHOSE_STREAMS - 1 }, () => connect('/firehose')))
  const abort = new AbortController()
  const stream = await fetch(`${url}/firehose`, { headers, signal: abort.signal })
  expect(stream.status).toBe(200)
  const refused = await fetch(`${url}/firehose`, { headers })
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '5'])
  expect(await refused.json()).toMatchObject({
    error: 'too_many_streams',
    message: expect.stringContaining('firehose'),
  })
  await expect(connect('/firehose')).rejects.toMatchObject({ status: 429, body: { error: 'too_many_streams' } })
  const late = await connectAs(url, '/firehose', {})
  late.say({ type: 'auth', token: KEY })
  expect(await late.closed).toBe(4429)
  // A conversation's own streams are counted apart.
  const { id } = await converse()
  const own = await connect(`/conversations/${id}/ws`)
  abort.abort()
  const open = () => connect('/firehose').then(({ close }) => close(), String)
  await expect.poll(open).toBeUndefined()
  for (const { close } of [...sockets, own]) close()
})

test('wrong keys are counted, in frames and in headers', async () => {
  const codes: number[] = []
  for (let i = 0; i < 25; i++) {
    const socket = await connectAs(url, '/firehose', {})
    socket.say({ type: 'auth', token: `wrong-key-number-${i}-of-many` })
    codes.push(await socket.closed)
  }
  expect(new Set(codes.slice(0, 20))).toEqual(new Set([4401]))
  expect(new Set(codes.slice(20))).toEqual(new Set([4429]))
  const right = await connectAs(url, '/firehose', {})
  right.say({ type: 'auth', token: KEY })
  expect(await right.until(() => true)).toMatchObject({ type: 'ready' })
  right.close()
  expect(http.bench.logged.filter((line) => line.includes('"msg":"audit"')).length).toBeGreaterThanOrEqual(25)
})

test('an HTTP client that offers another protocol gets the usual response', async () => {
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

test('frames that come in one piece with the upgrade are not lost', async () => {
  const path = `/conversations/${await http.create()}/ws`
  for (let round = 0; round < 20; round++) {
    const peer = connectRaw(Number(new URL(url).port), '127.0.0.1')
    let got = ''
    peer.setEncoding('latin1').on('data', (piece: string) => (got += piece))
    const upgrade = `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${'A'.repeat(22)}==\r\n\r\n`
    peer.write(
      Buffer.concat([Buffer.from(upgrade), textFrame({ type: 'auth', token: KEY }), textFrame({ type: 'pause' })]),
    )
    await expect.poll(() => got, { interval: 5 }).toContain('"of":"pause"')
    expect(got.indexOf('"type":"ready"')).toBeGreaterThan(got.indexOf('101 Switching Protocols'))
    peer.destroy()
  }
})

/** As a client frames it, masked with zeros; RFC 6455, section 5.2. Under 126 bytes. */
function textFrame(frame: object): Buffer {
  const payload = Buffer.from(JSON.stringify(frame))
  return Buffer.concat([Buffer.from([0x81, 0x80 | payload.length, 0, 0, 0, 0]), payload])
}

describe('a socket that has not shown a key', () => {
  const silent = (from?: string) =>
    connectAs(url, '/firehose', { headers: from === undefined ? {} : { 'x-forwarded-for': from } })
  const browser = async (from?: string) => {
    const socket = await silent(from)
    socket.say({ type: 'auth', token: KEY })
    return socket
  }

  test('refuses no client with a key, however many of them there are', async () => {
    const waiting = await Promise.all(Array.from({ length: 300 }, () => silent()))
    const inFrame = await browser()
    expect(await inFrame.until(() => true)).toMatchObject({ type: 'ready' })
    const inHeader = await connect('/firehose')
    for (const { close } of [...waiting, inFrame, inHeader]) close()
  })

  test('is closed for the next one of its address when as many of them wait as may, and for none of another address', async () => {
    await using behind = await setHttp({ http: { trustProxy: ['127.0.0.1'] } })
    url = await behind.listen()
    const other = await silent('203.0.113.1')
    const crowd: SocketClient[] = []
    for (let n = 0; n < MAX_WAITING_PER_CLIENT + 3; n++) crowd.push(await silent('203.0.113.2'))
    const codes = await Promise.all(crowd.slice(0, 3).map(({ closed }) => closed))
    expect(codes).toEqual([4401, 4401, 4401])
    const network: SocketClient[] = []
    for (let n = 0; n <= MAX_WAITING_PER_CLIENT; n++) network.push(await silent(`2001:db8::${n.toString(16)}`))
    expect(await network[0]!.closed, 'the addresses of one IPv6 network are one').toBe(4401)
    other.say({ type: 'auth', token: KEY })
    expect(await other.until(() => true)).toMatchObject({ type: 'ready' })
    for (const { close } of [...crowd, ...network, other]) close()
  })

  test('counts as a request without a valid key, whether it is evicted or disconnects', async () => {
    for (let n = 0; n < MAX_FAILED_KEYS; n++) (await silent()).close()
    await expect
      .poll(async () => (await fetch(`${url}/info`, { headers: { authorization: 'Bearer wrong' } })).status)
      .toBe(429)
    const late = await silent()
    expect(await late.closed).toBe(4429)
    expect((await fetch(`${url}/info`, { headers })).status).toBe(200)
    const right = await browser()
    expect(await right.until(() => true)).toMatchObject({ type: 'ready' })
    right.close()
  })
})
