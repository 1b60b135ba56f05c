import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import type { AddressInfo, Server, Socket } from 'node:net'
import { connect, createServer } from 'node:net'
import { buffer, text } from 'node:stream/consumers'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createConnectionPermits } from '../../src/network/connection-permits.ts'
import { parsePrivateRule } from '../../src/network/private-hosts.ts'
import type { ProxyAccess, Judgement } from '../../src/network/proxy.ts'
import { NetworkProxy } from '../../src/network/proxy.ts'
import { createOutboundConnector } from '../../src/network/outbound-connector.ts'

type Stand = {
  readonly proxy: NetworkProxy
  readonly seen: ProxyAccess[]
  /** Of the server behind it, which is `target.test`. */
  readonly port: number
  readonly end: () => void
  readonly client: () => Promise<Socket>
  /** What a client gets that sends this and nothing more. */
  readonly exchange: (bytes: string | Buffer) => Promise<string>
}

async function setUp(
  onConnection: (socket: Socket) => void,
  {
    judge,
    isStillAllowed = () => true,
    permits = 100,
  }: { judge?: () => Judgement; isStillAllowed?: () => boolean; permits?: number } = {},
): Promise<Stand> {
  const target = await listen(createServer({ allowHalfOpen: true }, onConnection))
  const port = portOf(target)
  const rule = parsePrivateRule(`target.test=127.0.0.1:${port}`)
  if ('wrong' in rule) throw new Error(rule.wrong)
  const seen: ProxyAccess[] = []
  const proxy = new NetworkProxy({
    judge: async () => judge?.() ?? { allowed: true, isApproved: false },
    isStillAllowed,
    reach: createOutboundConnector({ privateRules: [rule], resolve: async () => [] }),
    permits: createConnectionPermits(permits)(),
    onAccess: (access) => seen.push(access),
    redact: (text) => text,
  })
  const listener = await listen(createServer())
  const at = portOf(listener)
  const end = proxy.adopt(listener)
  onTestFinished(() => {
    proxy.close()
    end()
    target.close()
  })
  const client = async () => {
    const socket = connect({ port: at, host: '127.0.0.1', allowHalfOpen: true })
    socket.on('error', () => {})
    await once(socket, 'connect')
    return socket
  }
  const exchange = async (bytes: string | Buffer) => {
    const socket = await client()
    socket.end(bytes)
    return (await buffer(socket)).toString('latin1')
  }
  return { proxy, seen, port, end, client, exchange }
}

async function listen(server: Server): Promise<Server> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return server
}

const closed = (socket: Socket) => new Promise((resolve) => socket.resume().once('close', resolve))

const portOf = (server: Server) => (server.address() as AddressInfo).port

/** Sends back what it gets, once that has ended. */
const echo = (socket: Socket) => {
  socket.on('error', () => {})
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk)).once('end', () => socket.end(Buffer.concat(chunks)))
}
const greet = (name: string, port: number) =>
  Buffer.from([5, 1, 0, 5, 1, 0, 3, name.length, ...Buffer.from(name), port >> 8, port & 255])

test('CONNECT and SOCKS pass on what both sides say, also after one of them has ended', async () => {
  const { exchange, port } = await setUp(echo)
  expect(await exchange(`CONNECT target.test:${port} HTTP/1.1\r\n\r\nhello`)).toBe(
    'HTTP/1.1 200 Connection established\r\n\r\nhello',
  )
  const socks = await exchange(Buffer.concat([greet('target.test', port), Buffer.from('hello')]))
  expect(Buffer.from(socks, 'latin1').toString('hex')).toMatch(/^05000500/)
  expect(socks).toMatch(/hello$/)
})

test('a request for a whole URL reaches its host with its body', async () => {
  const { exchange, port } = await setUp(echo)
  const head = `POST http://target.test:${port}/x HTTP/1.1\r\nHost: other.test\r\nContent-Length: 4\r\n\r\n`
  expect(await exchange(`${head}body`)).toBe(
    `POST /x HTTP/1.1\r\nHost: target.test:${port}\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody`,
  )
})

describe.each(['', 'Upgrade: x\r\n'])('a request without a body (%j) to a server that never closes', (upgrade) => {
  /** It answers every head it gets, whatever that says of connections. */
  const setUpAnswering = async () => {
    const heads: string[] = []
    const stand = await setUp((socket) => {
      let text = ''
      socket.on('error', () => {}).on('end', () => socket.end())
      socket.on('data', (bytes: Buffer) => {
        const parts = (text + bytes.toString()).split('\r\n\r\n')
        text = parts.pop()!
        for (const head of parts) {
          heads.push(head)
          socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
        }
      })
    })
    const first = `GET http://target.test:${stand.port}/ HTTP/1.1\r\n${upgrade}\r\n`
    return { ...stand, heads, first }
  }
  const second = 'GET / HTTP/1.1\r\nHost: unlisted.example\r\n\r\n'

  test('is the only request that arrives, even if another one was sent with it', async () => {
    const { client, heads, first } = await setUpAnswering()
    const socket = await client()
    socket.write(first + second)
    expect(await text(socket)).toMatch(/ok$/)
    expect(heads).toHaveLength(1)
    socket.end()
  })

  test('is the only request that arrives, even if another one follows the response', async () => {
    const { client, heads, first } = await setUpAnswering()
    const socket = await client()
    socket.write(first)
    await once(socket, 'data')
    socket.write(second)
    await closed(socket.on('end', () => socket.end()))
    expect(heads).toHaveLength(1)
  })
})

test('a server that agrees to change the protocol gets all that the client says', async () => {
  const server = createHttpServer().on('upgrade', (_request, socket: Socket, head) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n')
    socket.write(head)
    socket.pipe(socket)
  })
  const { client, port } = await setUp((socket) => server.emit('connection', socket))
  const socket = await client()
  socket.write(`GET http://target.test:${port}/ HTTP/1.1\r\nUpgrade: x\r\n\r\nearly `)
  await once(socket, 'readable')
  socket.end('late')
  expect(await text(socket)).toMatch(/^HTTP\/1\.1 101 .*early late$/s)
})

test('a refused connection gets the reason, and is not made', async () => {
  let reached = 0
  const judge = (): Judgement => ({ allowed: false, reason: 'it is not on the list', advice: 'Ask for it.' })
  const { exchange, port, seen } = await setUp(() => reached++, { judge })
  const answer = await exchange(`CONNECT target.test:${port} HTTP/1.1\r\n\r\n`)
  expect(answer).toMatch(/^HTTP\/1\.1 403 /)
  expect(answer).toContain(`refused target.test:${port}: it is not on the list. Ask for it.\n`)
  expect(Buffer.from(await exchange(greet('target.test', port)), 'latin1').toString('hex')).toMatch(/^05000502/)
  expect(reached).toBe(0)
  expect(seen).toMatchObject([{ outcome: 'denied' }, { outcome: 'denied' }])
})

test('a client that is still sending gets to read why it was refused', async () => {
  const judge = (): Judgement => ({ allowed: false, reason: 'no', advice: '' })
  const { client, port } = await setUp(() => {}, { judge })
  const socket = await client()
  socket.write(`POST http://target.test:${port}/ HTTP/1.1\r\nContent-Length: 8000000\r\n\r\n`)
  socket.end(Buffer.alloc(8_000_000))
  expect(await text(socket)).toMatch(/^HTTP\/1\.1 403 /)
})

test('a permitted but unreachable host is reported as unreachable', async () => {
  const gone = await listen(createServer())
  const port = portOf(gone)
  gone.close()
  await once(gone, 'close')
  const rule = parsePrivateRule(`127.0.0.1:${port}`)
  if ('wrong' in rule) throw new Error(rule.wrong)
  const { exchange } = await setUp(echo)
  expect(await exchange(`CONNECT 127.0.0.1:${port} HTTP/1.1\r\n\r\n`)).toMatch(/^HTTP\/1\.1 403 .*loopback/s)
  expect(await exchange(`CONNECT nowhere.test:80 HTTP/1.1\r\n\r\n`)).toMatch(/^HTTP\/1\.1 403 .*no address/s)
})

test('a connection ends when its host is not permitted any more, and with its shell', async () => {
  let isAllowed = true
  const { client, port, proxy, end } = await setUp(echo, { isStillAllowed: () => isAllowed })
  const open = async () => {
    const socket = await client()
    socket.write(`CONNECT target.test:${port} HTTP/1.1\r\n\r\n`)
    await once(socket, 'data')
    return socket
  }
  const first = await open()
  proxy.recheck()
  expect(proxy.connections).toBe(1)
  isAllowed = false
  proxy.recheck()
  await closed(first)
  isAllowed = true
  const second = await open()
  end()
  await once(second.resume(), 'end')
  await expect.poll(() => proxy.connections).toBe(0)
})

test('a connection above the limit of the conversation is closed, and the others continue', async () => {
  const { client, port, proxy, exchange } = await setUp(echo, { permits: 3 })
  const held = await Promise.all([client(), client(), client()])
  await expect.poll(() => proxy.connections).toBe(3)
  const surplus = await client()
  await once(surplus.resume(), 'end')
  held[0].end(`CONNECT target.test:${port} HTTP/1.1\r\n\r\nhello`)
  expect(await text(held[0])).toContain('hello')
  await expect.poll(() => proxy.connections).toBe(2)
  expect(await exchange(`CONNECT target.test:${port} HTTP/1.1\r\n\r\nagain`)).toContain('again')
})

test('a client that does not read holds up its server, and not the memory', async () => {
  const sent: number[] = []
  const { client, port } = await setUp((socket) => {
    const chunk = Buffer.alloc(64 * 1024)
    const at = sent.push(0) - 1
    const fill = () => {
      while (sent[at]! < 1e9 && socket.write(chunk)) sent[at]! += chunk.length
    }
    socket.on('drain', fill).on('error', () => {})
    fill()
  })
  const [socket, reading] = [await client(), await client()]
  for (const each of [socket, reading]) {
    each.write(`CONNECT target.test:${port} HTTP/1.1\r\n\r\n`)
    await once(each, 'readable')
  }
  // By the time that one who reads has read all of this, so could have come as much to one who does not.
  let read = 0
  for await (const piece of reading) if ((read += (piece as Buffer).length) > 200e6) break
  expect(sent[0]).toBeLessThan(100e6)
  socket.destroy()
})

test('a target that breaks off breaks the connection of the client', async () => {
  const { client, port } = await setUp((socket) => socket.once('data', () => socket.resetAndDestroy()))
  const socket = await client()
  socket.write(`CONNECT target.test:${port} HTTP/1.1\r\n\r\nhello`)
  await closed(socket)
  expect(socket.destroyed).toBe(true)
})
