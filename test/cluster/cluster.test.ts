/** Two ends of a cluster in one process, over real connections: what a request gets whose owner does not answer. */
import { loneInstance } from '../support/instances.ts'
import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { Access } from '../../src/access/access.ts'
import type { ClusterOptions } from '../../src/cluster/cluster.ts'
import { Cluster } from '../../src/cluster/cluster.ts'
import type { SentRequest } from '../../src/cluster/peer-client.ts'
import type { Peer } from '../../src/storage/instances.ts'
import { startCutProxy } from '../support/cut-proxy.ts'
import { longEnough } from '../support/long-enough.ts'
import { PATIENCE_MS } from '../support/patience.ts'
import { until } from '../support/until.ts'

const MASTER = { fingerprint: 'test', access: Access.master() }
const OWNER = 2

const sent = (path: string): SentRequest => ({
  method: 'GET',
  path,
  headers: {},
  body: undefined,
  signal: new AbortController().signal,
})

async function setCluster(answer: RequestListener, more: Partial<ClusterOptions> = {}) {
  const lookups: string[] = []
  let owns: Peer | undefined
  const ended = new Set<number>()
  const refused: string[] = []
  const clusterOf = (own: number) =>
    new Cluster({
      instances: {
        ...loneInstance(own),
        ended: async (instances) => instances.filter((each) => ended.has(each)),
        otherOwnerOf: async () => {
          lookups.push(String(own))
          return owns
        },
      },
      keyMaterial: 'a data key',
      tls: undefined,
      onFault: () => {},
      onRefused: (error) => refused.push(String(error)),
      checkMs: 10,
      silence: { lookMs: 10, connectMs: PATIENCE_MS },
      reportMs: 3_600_000,
      ownerMs: 3_600_000,
      ...more,
    })
  const [asked, owner] = [clusterOf(1), clusterOf(OWNER)]
  const address = await owner.listen(createServer(answer), {
    host: '127.0.0.1',
    port: 0,
    advertiseUrl: undefined,
    settings: {},
  })
  const network = await startCutProxy(new URL(address))
  return {
    lookups,
    name: (peer: Peer | undefined) => (owns = peer),
    asked,
    owner,
    ended,
    refused,
    address: new URL(address),
    network,
    send: (path: string) => asked.send({ instance: OWNER, address: network.url }, sent(path), MASTER),
    async [Symbol.asyncDispose]() {
      await asked[Symbol.asyncDispose]()
      await owner[Symbol.asyncDispose]()
      await network.close()
    },
  }
}

test('a request and a stream whose owner has been declared dead end, although their connections stay open', async () => {
  const arrived: string[] = []
  await using cluster = await setCluster(({ url = '' }, response) => {
    arrived.push(url)
    if (url === '/stream') response.write('the first event')
  })
  const stream = await cluster.send('/stream')
  const request = cluster.send('/silent')
  request.catch(() => {}) // looked at below
  await once(stream.body, 'readable')
  await until('the request at the owner', async () => arrived.length === 2)
  cluster.ended.add(OWNER)
  await expect(request).rejects.toMatchObject({ code: 'owner_lost', message: expect.stringContaining('may have been') })
  await expect(buffer(stream.body)).rejects.toThrow()
})

test.each(['requests', 'answers'] as const)(
  'a request and a stream end when the network lets nothing of the %s through',
  async (direction) => {
    const owner: RequestListener = ({ url }, response) => {
      if (url === '/stream') response.write('the first event')
    }
    await longEnough(0.25, async (seconds) => {
      await using cluster = await setCluster(owner, { silence: { lookMs: 10, connectMs: seconds * 1000 } })
      const stream = await cluster.send('/stream').catch(() => {})
      if (stream === undefined) return false
      const isOpen = await once(stream.body, 'readable').catch(() => false)
      if (isOpen === false) return false
      cluster.network.hold(direction)
      await expect(cluster.send('/silent')).rejects.toMatchObject({ code: 'owner_lost' })
      await expect(buffer(stream.body)).rejects.toThrow()
      return true
    })
  },
)

test('a connection that cannot be made ends no stream over another one', async () => {
  const waiting: (() => void)[] = []
  await using cluster = await setCluster((_, response) => {
    response.write('the first event. ')
    waiting.push(() => response.end('The last.'))
  })
  const stream = await cluster.send('/stream')
  cluster.network.refuse()
  await expect(cluster.send('/other')).rejects.toMatchObject({
    code: 'owner_lost',
    message: expect.stringContaining('It was not executed.'),
  })
  waiting.forEach((end) => end())
  expect((await buffer(stream.body)).toString()).toBe('the first event. The last.')
})

test('the owner of a conversation is asked for again once the instance has closed its connections', async () => {
  await using cluster = await setCluster((_, response) => response.end('answered'))
  const owner = { instance: OWNER, address: cluster.network.url }
  cluster.name(owner)
  const likelyOwner = () => cluster.asked.likelyOwnerElsewhere({}, 'conversation')
  expect(await likelyOwner()).toBe(owner)
  await buffer((await cluster.send('/')).body)
  cluster.name(undefined)
  expect(await likelyOwner()).toBe(owner)
  await cluster.owner[Symbol.asyncDispose]()
  await until('the end of the connections', async () => (await likelyOwner()) === undefined)
})

test('connections that prove nothing do not add up, and keep no instance out', async () => {
  await using cluster = await setCluster((_, response) => response.end('answered'))
  const { hostname, port } = cluster.address
  const silent = await Promise.all(
    Array.from({ length: 300 }, async () => {
      const socket = connect(Number(port), hostname).on('error', () => {})
      await once(socket, 'connect')
      return socket.resume()
    }),
  )
  onTestFinished(() => silent.forEach((socket) => socket.destroy()))
  await until('the oldest ones to be closed', async () =>
    cluster.refused.some((error) => error.startsWith('Error: Too many')),
  )
  const { body } = await cluster.send('/')
  expect((await buffer(body)).toString()).toBe('answered')
  // Many were closed, and the log has one line.
  expect(cluster.refused).toHaveLength(1)
})

test('the database is asked once for the owner of several requests, and again after one has failed', async () => {
  let isOpen = false
  await using cluster = await setCluster((_, response) => response.end('answered'), { isHere: async () => isOpen })
  const { asked, lookups } = cluster
  const peer = { instance: OWNER, address: cluster.network.url }
  const find = () => asked.likelyOwnerElsewhere({}, 'an id')
  cluster.name(peer)
  expect([await find(), await find()]).toEqual([peer, peer])
  expect(lookups).toEqual(['1'])
  // This instance has taken it over.
  isOpen = true
  cluster.name(undefined)
  expect(await find()).toBeUndefined()
  isOpen = false
  cluster.name(peer)
  expect([await find(), await find()]).toEqual([peer, peer])
  await asked.send({ ...peer, address: 'http://127.0.0.1:9' }, sent('/'), MASTER).catch(() => {})
  expect(await find()).toEqual(peer)
  expect(lookups).toHaveLength(4)
})

test('a request that reaches an instance without the conversation is forwarded to the one that has it', async () => {
  const third = { instance: 3, address: 'http://127.0.0.1:9' }
  const found: unknown[] = []
  let isOpen = true
  const cluster = await setCluster(
    (request, response) => {
      const looking = cluster.owner.ownerElsewhere(request.socket, 'an id')
      void looking.then((peer) => {
        found.push(peer)
        return response.end()
      })
    },
    { isHere: async () => isOpen },
  )
  await using _ = cluster
  cluster.name(third)
  await cluster.send('/')
  isOpen = false
  await cluster.send('/')
  expect(found).toEqual([undefined, third])
})
