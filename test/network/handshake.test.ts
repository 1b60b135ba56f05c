import { assert, constantFrom, integer, property, uint8Array } from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createHandshake, MAX_HANDSHAKE_BYTES } from '../../src/network/handshake.ts'
import { formatTarget } from '../../src/network/host.ts'
import type { Request, Step } from '../../src/network/proxy-request.ts'
import { effort } from '../support/patience.ts'

type Outcome = {
  readonly replies: Buffer
  readonly request?: Request
  readonly rest: Buffer
  readonly isFault: boolean
}

/** As a connection would be read, in pieces of these sizes. */
function shakeHands(bytes: Buffer, size = bytes.length): Outcome {
  const parse = createHandshake()
  let [unused, replies] = [Buffer.alloc(0), Buffer.alloc(0)]
  for (let at = 0; at < bytes.length; at += size) {
    unused = Buffer.concat([unused, bytes.subarray(at, at + size)])
    for (let step: Step | undefined; (step = parse(unused));) {
      if (step.kind === 'fault') return { replies: Buffer.concat([replies, step.bytes]), rest: unused, isFault: true }
      unused = unused.subarray(step.used)
      const rest = Buffer.concat([unused, bytes.subarray(at + size)])
      if (step.kind === 'request') return { replies, request: step.request, rest, isFault: false }
      replies = Buffer.concat([replies, step.bytes])
    }
  }
  return { replies, rest: unused, isFault: false }
}

const targetOf = ({ request }: Outcome) => request && formatTarget(request.host, request.port)
const http = (...lines: string[]) => Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
const socks = (type: number, address: Uint8Array, port: number, command = 1) =>
  Buffer.from([5, 1, 0, 5, command, 0, type, ...address, port >> 8, port & 255])
const named = (name: string) => Buffer.from([name.length, ...Buffer.from(name)])

describe.each([
  ['at once', Infinity],
  ['byte by byte', 1],
  ['in threes', 3],
])('read %s', (_, size) => {
  const read = (bytes: Buffer) => shakeHands(bytes, Math.min(size, bytes.length))

  test.each<[what: string, bytes: Buffer, target: string]>([
    ['CONNECT', http('CONNECT example.com:443 HTTP/1.1', 'Host: example.com:443'), 'example.com:443'],
    ['CONNECT to an address', http('CONNECT [2001:db8::1]:443 HTTP/1.0'), '[2001:db8::1]:443'],
    ['a whole URL', http('GET http://Example.com/a?b=http://c HTTP/1.1', 'Host: other.example'), 'example.com:80'],
    ['a whole URL with a port', http('POST http://example.com:8080 HTTP/1.1'), 'example.com:8080'],
    ['SOCKS with a name', socks(3, named('Example.com'), 443), 'example.com:443'],
    ['SOCKS with an IPv4 address', socks(1, Buffer.from([203, 0, 113, 7]), 80), '203.0.113.7:80'],
    [
      'SOCKS with an IPv6 address',
      socks(4, Buffer.from('20010db8000000000000000000000001', 'hex'), 80),
      '[2001:db8::1]:80',
    ],
    [
      'SOCKS with a mapped address',
      socks(4, Buffer.from('00000000000000000000ffff7f000001', 'hex'), 80),
      '127.0.0.1:80',
    ],
    ['SOCKS with an odd address as a name', socks(3, named('0x7f.1'), 80), '127.0.0.1:80'],
  ])('%s asks for its target, and keeps what follows', (_what, bytes, target) => {
    const outcome = read(Buffer.concat([bytes, Buffer.from('what follows')]))
    expect(targetOf(outcome)).toBe(target)
    expect(outcome.rest.toString()).toBe('what follows')
  })

  test.each<[what: string, bytes: Buffer, answer: RegExp]>([
    [
      'a request to the proxy itself',
      http('GET / HTTP/1.1', 'Host: 127.0.0.1:3128'),
      /^HTTP\/1\.1 400 .*absolute http:\/\/ URL/s,
    ],
    ['an https URL', http('GET https://example.com/ HTTP/1.1'), /^HTTP\/1\.1 400 /],
    ['a URL with a user', http('GET http://a@example.com/ HTTP/1.1'), /^HTTP\/1\.1 400 /],
    ['a folded header', http('GET http://example.com/ HTTP/1.1', 'A: b', ' c'), /^HTTP\/1\.1 400 /],
    ['a bare line feed', http('GET http://example.com/ HTTP/1.1\nHost: b'), /^HTTP\/1\.1 400 /],
    ['a NUL', http('GET http://example.com/ HTTP/1.1', 'A: \0'), /^HTTP\/1\.1 400 /],
    ['CONNECT without a port', http('CONNECT example.com HTTP/1.1'), /^HTTP\/1\.1 400 /],
    ['CONNECT to a zone', http('CONNECT [fe80::1%eth0]:80 HTTP/1.1'), /^HTTP\/1\.1 400 /],
    ['HTTP of another version', http('GET http://example.com/ HTTP/2.0'), /^HTTP\/1\.1 400 /],
    ['a TLS greeting', Buffer.from('160301020001000001fc0303', 'hex'), /^HTTP\/1\.1 400 /],
    ['SOCKS 4', Buffer.from([4, 1, 0, 80, 127, 0, 0, 1, 0]), /^HTTP\/1\.1 400 /],
  ])('%s is answered and ended', (_what, bytes, answer) => {
    const outcome = read(bytes)
    expect(outcome.isFault).toBe(true)
    expect(outcome.replies.toString('latin1')).toMatch(answer)
  })

  test.each<[what: string, bytes: Buffer, answer: string]>([
    ['SOCKS with a password only', Buffer.from([5, 1, 2]), '05ff'],
    ['SOCKS BIND', socks(1, Buffer.from([203, 0, 113, 7]), 80, 2), '05000507'],
    ['SOCKS UDP', socks(1, Buffer.from([203, 0, 113, 7]), 80, 3), '05000507'],
    ['SOCKS with an unknown type', socks(2, Buffer.from([1, 1]), 80), '05000508'],
    ['SOCKS with a wrong name', socks(3, named('a b'), 80), '05000501'],
    ['SOCKS with port 0', socks(3, named('a.example'), 0), '05000501'],
  ])('%s is answered and ended', (_what, bytes, answer) => {
    const outcome = read(bytes)
    expect(outcome.isFault).toBe(true)
    expect(outcome.replies.toString('hex').slice(0, answer.length)).toBe(answer)
  })
})

describe('a request that is passed on', () => {
  const head = (...lines: string[]) => {
    const { request } = shakeHands(http(...lines))
    return Buffer.from(request!.head).toString('latin1')
  }

  test('replaces the Host header by the host of its URL', () => {
    expect(head('GET http://a.example:8080/x?y HTTP/1.1', 'Host: b.example', 'X-Y: é')).toBe(
      'GET /x?y HTTP/1.1\r\nHost: a.example:8080\r\nX-Y: é\r\nConnection: close\r\n\r\n',
    )
  })

  test('does not forward headers meant for the proxy', () => {
    const sent = [
      'Proxy-Authorization: Basic eA==',
      'Proxy-Connection: keep-alive',
      'Connection: keep-alive',
      'Keep-Alive: 5',
    ]
    expect(head('GET http://a.example HTTP/1.1', ...sent)).toBe(
      'GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n',
    )
  })

  test('can become another protocol', () => {
    expect(head('GET http://a.example/ws HTTP/1.1', 'Upgrade: websocket', 'Connection: Upgrade')).toContain(
      'Upgrade: websocket\r\nConnection: Upgrade, close\r\n',
    )
  })

  test('is not upgraded if it has a body', () => {
    const sent = ['Upgrade: h2c', 'Connection: Upgrade', 'Content-Length: 4']
    expect(head('POST http://a.example/ HTTP/1.1', ...sent)).toBe(
      'POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 4\r\nConnection: close\r\n\r\n',
    )
  })
})

test('no bytes make it read forever or throw', () => {
  const start = constantFrom(
    '',
    '\x05',
    '\x05\x01\x00',
    'CONNECT ',
    'GET http://',
    'GET http://a.example/ HTTP/1.1\r\n',
  )
  assert(
    property(start, uint8Array({ maxLength: 300 }), integer({ min: 1, max: 50 }), (first, more, size) => {
      const bytes = Buffer.concat([Buffer.from(first, 'latin1'), more])
      expect(() => shakeHands(bytes, size)).not.toThrow()
    }),
    { numRuns: effort(150, 20_000) },
  )
})

test('a head that does not end is not waited for', () => {
  const endless = Buffer.from(`GET http://a.example/ HTTP/1.1\r\nA: ${'x'.repeat(MAX_HANDSHAKE_BYTES)}`)
  expect(shakeHands(endless, 1000).isFault).toBe(true)
})
