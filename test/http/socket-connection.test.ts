import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import type { ConnectionOptions } from '../../src/http/socket/connection.ts'
import { SocketConnection } from '../../src/http/socket/connection.ts'
import { sendFeed } from '../../src/http/socket/send-feed.ts'
import { message, sharedLog, toolResult } from '../events/fixtures.ts'
import type { EventLog } from '../../src/events/event-log.ts'

describe('a connection', () => {
  let server: WebSocketServer
  let clients: WebSocket[]

  beforeEach(async () => {
    server = new WebSocketServer({ host: '127.0.0.1', port: 0, closeTimeout: 200 } as object)
    clients = []
    await once(server, 'listening')
  })
  afterEach(async () => {
    for (const client of [...clients, ...server.clients]) client.terminate()
    server.close()
    await once(server, 'close')
  })

  async function connect(options: ConnectionOptions, how: { autoPong?: boolean } = {}) {
    const { port } = server.address() as AddressInfo
    const accepted = once(server, 'connection')
    const client = new WebSocket(`ws://127.0.0.1:${port}`, { perMessageDeflate: false, ...how })
    clients.push(client)
    const [[ws]] = (await Promise.all([accepted, once(client, 'open')])) as [[WebSocket], unknown]
    return { client, socket: new SocketConnection(ws, options) }
  }

  /** Returns how many pings the client has been sent since. */
  function countPings({ client }: { client: WebSocket }): () => number {
    let pings = 0
    client.on('ping', () => (pings += 1))
    return () => pings
  }

  const isGone = ({ socket }: { socket: SocketConnection }) => socket.signal.aborted

  test('ends a peer that does not answer a ping before the next, and no other', async () => {
    const [deaf, sound] = [await connect({ pingMs: 40 }, { autoPong: false }), await connect({ pingMs: 1000 })]
    const pings = countPings(sound)
    await expect.poll(() => isGone(deaf)).toBe(true)
    await expect.poll(pings).toBeGreaterThan(2)
    expect(isGone(sound)).toBe(false)
  })

  test('does not take a peer for gone whose answers it has not read', async () => {
    const [connected, other] = [await connect({ pingMs: 300 }), await connect({ pingMs: 300 })]
    const pings = countPings(other)
    for (let i = 0; i < 40; i++) connected.client.send(`${i}`)
    await expect.poll(pings).toBeGreaterThan(2)
    expect(isGone(connected)).toBe(false)
    expect(await connected.socket.frames.next()).toMatchObject({ value: '0' })
  })

  test('reads no more from a peer than it can execute, and then all of it in order', async () => {
    const { client, socket } = await connect({})
    const sent = Array.from({ length: 400 }, (_, i) => `${i} ${'x'.repeat(100_000)}`)
    for (const frame of sent) client.send(frame)
    // By then, another peer has sent as much, all of which was read.
    const other = await connect({})
    for (const frame of sent) other.client.send(frame)
    for (const frame of sent) expect((await other.socket.frames.next()).value).toBe(frame)
    // What the kernel does not take for us stays with the peer.
    expect(client.bufferedAmount).toBeGreaterThan(20_000_000)
    for (const frame of sent) expect((await socket.frames.next()).value).toBe(frame)
    expect(client.bufferedAmount).toBe(0)
  })

  test('waits for a peer that is slow, and ends one that takes nothing at all', async () => {
    const slow = await connect({ stallMs: 60_000 })
    const stuck = await connect({ stallMs: 100 })
    const large = Buffer.alloc(20_000_000, 'x')
    for (const { client } of [slow, stuck]) client.pause()
    const sent = slow.socket.sendAll([large, Buffer.from('last')])
    const got: number[] = []
    slow.client.on('message', (data: Buffer) => got.push(data.length))
    await stuck.socket.sendAll([large])
    await expect.poll(() => isGone(stuck)).toBe(true)
    expect(isGone(slow)).toBe(false)
    slow.client.resume()
    await sent
    await expect.poll(() => got).toEqual([large.length, 4])
  })

  test('reports, after a silence, the position reached behind a filter if it has moved, and otherwise sends a heartbeat', async () => {
    let beats = 0
    const openFeed = async (log: EventLog) => {
      const { client, socket } = await connect({})
      const got: object[] = []
      client.on('message', (data: Buffer) => {
        const frame = JSON.parse(data.toString())
        if (frame.type === 'heartbeat') beats += 1
        else got.push(frame)
      })
      const sending = sendFeed(socket, log, {
        types: new Set(['ToolResult']),
        bufferBytes: 65_536,
        heartbeatMs: 30,
        onOpen: () => () => {},
        greetings: [{ type: 'ready' }],
        reached: (after_seq) => ({ type: 'reached', after_seq }),
      })
      return { client, got, sending }
    }
    await using shared = await sharedLog()
    const { client, got, sending } = await openFeed(shared.log)
    await shared.log.append([message('kept back'), toolResult('sent'), message('kept back')])
    await expect.poll(() => got.at(-1)).toEqual({ type: 'reached', after_seq: 3 })
    // Another reader, which came later, has some heartbeats meanwhile.
    await using others = await sharedLog()
    const other = await openFeed(others.log)
    for (const after_seq of [1, 2, 3]) {
      await others.log.append([message('kept back')])
      await expect.poll(() => other.got.at(-1)).toEqual({ type: 'reached', after_seq })
    }
    await shared.log.append([message('kept back')])
    await expect.poll(() => got.at(-1)).toEqual({ type: 'reached', after_seq: 4 })
    expect(got).toMatchObject([{ type: 'ready' }, { seq: 2 }, { type: 'reached' }, { type: 'reached' }])
    await expect.poll(() => beats).toBeGreaterThanOrEqual(2)
    for (const each of [client, other.client]) each.terminate()
    await Promise.all([sending, other.sending])
  })

  test('ends with its last frame and code behind everything else, and sends nothing afterwards', async () => {
    const { client, socket } = await connect({})
    const got: string[] = []
    client.on('message', (data: Buffer) => got.push(data.toString().slice(0, 30)))
    const closed = once(client, 'close')
    void socket.sendAll([Buffer.alloc(3_000_000, 'x')])
    await socket.end({ type: 'lagged' }, 4000)
    await socket.send({ type: 'late' })
    expect((await closed)[0]).toBe(4000)
    expect(got).toEqual(['x'.repeat(30), '{"type":"lagged"}'])
    await expect.poll(() => socket.signal.aborted).toBe(true)
    expect(await socket.frames.next()).toMatchObject({ done: true })
  })
})
