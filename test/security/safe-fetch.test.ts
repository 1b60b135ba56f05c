/** No address that is not public is ever connected to, whatever name or form leads there. */
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { networkInterfaces } from 'node:os'
import { describe, expect, onTestFinished, test } from 'vitest'
import { AddressRefused } from '../../src/security/guarded-connector.ts'
import { isOwnAddress } from '../../src/security/own-address.ts'
import { createAddressRules, isAddressRule } from '../../src/security/public-address.ts'
import type { SafeFetchOptions } from '../../src/security/safe-fetch.ts'
import { createSafeFetch } from '../../src/security/safe-fetch.ts'
import { PATIENCE_MS } from '../support/patience.ts'

const HIDDEN = [
  ['loopback', '127.0.0.1'],
  ['loopback', '127.255.255.254'],
  ['loopback', '::1'],
  ['loopback, as IPv4-compatible', '::127.0.0.1'],
  ['loopback, IPv4-mapped', '::ffff:127.0.0.1'],
  ['loopback, IPv4-mapped in hexadecimal', '::ffff:7f00:1'],
  ['loopback, IPv4-translated', '::ffff:0:127.0.0.1'],
  ['loopback, by NAT64', '64:ff9b::7f00:1'],
  ['private, by local NAT64', '64:ff9b:1::a00:1'],
  ['private, by 6to4', '2002:a00:1::'],
  ['teredo', '2001:0:4136:e378:8000:63bf:3fff:fdd2'],
  ['this host', '0.0.0.0'],
  ['this network', '0.1.2.3'],
  ['unspecified', '::'],
  ['private', '10.0.0.1'],
  ['private', '172.16.0.1'],
  ['private', '172.31.255.255'],
  ['private', '192.168.1.1'],
  ['private, IPv4-mapped', '::ffff:192.168.1.1'],
  ['shared by carriers', '100.64.0.1'],
  ['link-local', '169.254.1.1'],
  ['metadata', '169.254.169.254'],
  ['metadata, IPv4-mapped', '::ffff:169.254.169.254'],
  ['metadata, unique local', 'fd00:ec2::254'],
  ['link-local', 'fe80::1'],
  ['link-local with a zone', 'fe80::1%lo'],
  ['site-local', 'fec0::1'],
  ['unique local', 'fc00::1'],
  ['multicast', '224.0.0.1'],
  ['multicast', 'ff02::1'],
  ['broadcast', '255.255.255.255'],
  ['reserved', '240.0.0.1'],
  ['for documentation', '192.0.2.1'],
  ['for documentation', '2001:db8::1'],
  ['for benchmarks', '198.18.0.1'],
  ['the platform of Azure', '168.63.129.16'],
  ['the platform of Azure, IPv4-mapped', '::ffff:168.63.129.16'],
  ['the platform of Azure, by NAT64', '64:ff9b::a83f:8110'],
  ['the platform of Azure, by 6to4', '2002:a83f:8110::'],
  ['the platform of Oracle', '192.0.0.192'],
  ['the platform of Alibaba', '100.100.100.200'],
  ['discarded', '100::1'],
  ['for segment routing', '5f00::1'],
  ['nobody’s', '4000::1'],
] as const

test.each(HIDDEN)('%s: %s is refused', (_what, address) => {
  expect(createAddressRules([]).refusal(address, 'example.com')).toContain('not a public one')
})

test.each(['8.8.8.8', '1.1.1.1', '172.32.0.1', '100.128.0.1', '2606:4700::1111', '::ffff:8.8.8.8'])(
  '%s is public',
  (address) => {
    expect(createAddressRules([]).refusal(address, 'example.com')).toBeUndefined()
  },
)

describe('an address of this machine', () => {
  const isOwn = (address: string) => address === '8.8.8.8' || address === '2606:4700::1111'

  test.each(['8.8.8.8', '::ffff:8.8.8.8', '2606:4700::1111', '2606:4700:0::1111'])('%s is refused', (address) => {
    const refusal = createAddressRules([], isOwn).refusal(address, 'www.example.com')
    expect(refusal).toBe('its address belongs to the server’s own machine')
  })

  test('is used if the operator allows it or the name of its host', () => {
    for (const allowed of ['8.8.8.8', '8.8.0.0/16', 'www.example.com'])
      expect(createAddressRules([allowed], isOwn).refusal('8.8.8.8', 'www.example.com')).toBeUndefined()
  })

  test('is each one of an interface', () => {
    const all = Object.values(networkInterfaces()).flatMap((each) => each ?? [])
    for (const { address } of all) expect(isOwnAddress(address)).toBe(true)
    expect(isOwnAddress('203.0.113.7')).toBe(false)
  })
})

describe('the operator allows', () => {
  const refusal = (allow: string, address: string, host = 'other.example.com') =>
    createAddressRules(allow.split(',')).refusal(address, host)

  test.each([
    ['10.1.0.0/16', '10.1.2.3'],
    ['10.1.0.0/16', '::ffff:10.1.2.3'],
    ['10.1.2.3', '10.1.2.3'],
    ['::1', '::1'],
    ['fd00::/8', 'fd12::1'],
    ['0.0.0.0/0,::/0', 'fe80::1'],
    ['0.0.0.0/0,::/0', '169.254.169.254'],
  ])('with %s the address %s', (allow, address) => expect(refusal(allow, address)).toBeUndefined())

  test.each([
    ['10.1.0.0/16', '10.2.2.3'],
    ['10.1.2.3', '10.1.2.4'],
    ['::/0', '10.1.2.3'],
    ['hooks.example.com', '10.1.2.3'],
  ])('with %s not %s', (allow, address) => expect(refusal(allow, address)).toBeDefined())

  test('a host at any address, but not its subdomains', () => {
    expect(refusal('Hooks.example.com', '10.0.0.1', 'hooks.EXAMPLE.com.')).toBeUndefined()
    expect(refusal('hooks.example.com', '10.0.0.1', 'a.hooks.example.com')).toBeDefined()
  })

  test.each(['10.0.0.0/8', '::1', 'fd00::/8', 'localhost', 'hooks.example.com', 'a_b.internal'])(
    '%s is a rule',
    (entry) => expect(isAddressRule(entry)).toBe(true),
  )

  test.each([
    '10.0.0.0/33',
    '10.0.0',
    '10/8',
    '256.1.1.1',
    'http://example.com',
    'a b',
    '*',
    'example.com/8',
    '-a',
    '',
  ])('%s is not public', (entry) => expect(isAddressRule(entry)).toBe(false))
})

type Handle = (request: IncomingMessage, response: ServerResponse) => void

async function listen(handle: Handle = (_, response) => response.writeHead(204).end(), host = '127.0.0.1') {
  const requests: string[] = []
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url} ${request.headers.host}`)
    handle(request, response)
  }).listen(0, host)
  await once(server, 'listening')
  let connections = 0
  server.on('connection', () => connections++)
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  return { requests, port, connections: () => connections, url: `http://${host}:${port}/` }
}

function fetchWith(options: Partial<SafeFetchOptions> = {}) {
  const fetch = createSafeFetch({ allow: [], ...options })
  onTestFinished(() => fetch.close())
  const post = (url: string, signal = AbortSignal.timeout(PATIENCE_MS)) =>
    fetch.post(url, { headers: {}, body: '{}', signal })
  return { fetch, post }
}

const at = (address: string) => ({ address, family: address.includes(':') ? 6 : 4 })

test('an address in the URL is checked when the connection is made, in whatever form it is written', async () => {
  const { requests, port } = await listen()
  const { post, fetch } = fetchWith()
  for (const host of [
    '127.0.0.1',
    '127.1',
    '0x7f000001',
    '2130706433',
    '017700000001',
    '[::ffff:127.0.0.1]',
    '0.0.0.0',
    '[::1]',
  ]) {
    const url = `http://${host}:${port}/`
    await expect(post(url), host).rejects.toThrow(AddressRefused)
    expect(await fetch.refusal(url), host).toContain('not a public one')
  }
  await expect(post(`https://127.0.0.1:${port}/`)).rejects.toThrow(AddressRefused)
  expect(requests).toEqual([])
})

test('a name that resolves to a public address at registration and to this machine at delivery is refused', async () => {
  const { connections, port } = await listen()
  const answers = ['93.184.215.14', '127.0.0.1']
  const { fetch, post } = fetchWith({ lookup: async () => [at(answers.shift() ?? '127.0.0.1')] })
  const url = `http://rebinding.example.com:${port}/`
  expect(await fetch.refusal(url)).toBeUndefined()
  await expect(post(url)).rejects.toThrow(AddressRefused)
  expect(connections()).toBe(0)
})

test('the actual peer address counts, whatever was requested', async () => {
  const { requests, port } = await listen()
  // Linux takes it for the loopback address.
  await expect(fetchWith({ allow: ['0.0.0.0'] }).post(`http://0.0.0.0:${port}/`)).rejects.toThrow(AddressRefused)
  expect(requests).toEqual([])
})

test('a name is looked up once for a connection, and what was judged is connected to', async () => {
  const { requests, port } = await listen(undefined, '127.0.0.2')
  let lookups = 0
  // The second answer would be connected to if it were asked for.
  const lookup = async () => [at(++lookups === 1 ? '127.0.0.2' : '127.0.0.3')]
  const { post } = fetchWith({ allow: ['127.0.0.2'], lookup })
  expect(await post(`http://name.example.com:${port}/hook`)).toMatchObject({ status: 204 })
  expect(lookups).toBe(1)
  expect(requests).toEqual([`POST /hook name.example.com:${port}`])
})

test('of several addresses only permitted ones are tried', async () => {
  const { requests, port } = await listen()
  const open = await listen(undefined, '127.0.0.2')
  const { post } = fetchWith({
    allow: ['127.0.0.2'],
    lookup: async () => [at('127.0.0.1'), at('::1'), at('127.0.0.2')],
  })
  await expect(post(`http://name.example.com:${port}/`)).rejects.toThrow()
  expect(requests).toEqual([])
  expect(await post(`http://name.example.com:${open.port}/`)).toMatchObject({ status: 204 })
})

test('a name that does not resolve is not refused beforehand, but fails when it is called', async () => {
  const lookup = () => Promise.reject(Object.assign(new Error('no such name'), { code: 'ENOTFOUND' }))
  const { fetch, post } = fetchWith({ lookup })
  expect(await fetch.refusal('http://nowhere.example.com/')).toBeUndefined()
  await expect(post('http://nowhere.example.com/')).rejects.toMatchObject({ code: 'ENOTFOUND' })
})

test.each([301, 302, 303, 307, 308])('a redirect with %i is an answer, and not followed', async (status) => {
  const inside = await listen(undefined, '127.0.0.2')
  const { url, requests } = await listen((_, response) => response.writeHead(status, { location: inside.url }).end())
  const { post } = fetchWith({ allow: ['127.0.0.1', '127.0.0.2'] })
  expect(await post(url)).toMatchObject({ status })
  expect(requests).toHaveLength(1)
  expect(inside.requests).toEqual([])
})

test('of an answer without end only a part is read', async () => {
  let written = 0
  const { url } = await listen((_, response) => {
    response.writeHead(200)
    const more = () => {
      while (!response.destroyed && response.write('x'.repeat(16_384))) written += 16_384
    }
    response.on('drain', more)
    more()
  })
  const { post } = fetchWith({ allow: ['127.0.0.1'] })
  expect(await post(url)).toMatchObject({ status: 200 })
  expect(written).toBeLessThan(64 * 1024 * 1024)
})

test('an interrupted response fails', async () => {
  const { url } = await listen((_, response) => {
    response.writeHead(200, { 'content-length': '1000' }).write('half of ', () => response.destroy())
  })
  await expect(fetchWith({ allow: ['127.0.0.1'] }).post(url)).rejects.toMatchObject({ code: 'UND_ERR_SOCKET' })
})

test('the signal ends it at any point; closing ends requests in progress', async () => {
  const { url, requests } = await listen(() => {})
  const { post, fetch } = fetchWith({ allow: ['127.0.0.1'] })
  await expect(post(url, AbortSignal.timeout(50))).rejects.toMatchObject({ name: 'TimeoutError' })
  // On a slow machine the first one has ended before it arrived.
  const before = requests.length
  const going = post(url)
  going.catch(() => {})
  await expect.poll(() => requests.length).toBeGreaterThan(before)
  await fetch.close()
  await expect(going).rejects.toThrow()
})
