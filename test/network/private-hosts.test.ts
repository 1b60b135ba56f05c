import { networkInterfaces } from 'node:os'
import { describe, expect, test } from 'vitest'
import { parseHost } from '../../src/network/host.ts'
import { createPrivateHosts, isMetadata, parsePrivateRule } from '../../src/network/private-hosts.ts'
import { AddressDenied, createOutboundConnector } from '../../src/network/outbound-connector.ts'
import { PATIENCE_MS } from '../support/patience.ts'

function rule(text: string) {
  const parsed = parsePrivateRule(text)
  if ('wrong' in parsed) throw new Error(parsed.wrong)
  return parsed
}

const isOpen = (rules: string[], address: string, port: number, host = address) =>
  createPrivateHosts(rules.map(rule))(address, port, parseHost(host)!)

describe('what the operator opens', () => {
  test.each<[rule: string, address: string, port: number, host: string, opens: boolean]>([
    ['10.1.2.3', '10.1.2.3', 5432, '10.1.2.3', true],
    ['10.1.2.3', '10.1.2.4', 5432, '10.1.2.4', false],
    ['10.0.0.0/8:443', '10.9.9.9', 443, 'intranet.example', true],
    ['10.0.0.0/8:443', '10.9.9.9', 80, 'intranet.example', false],
    ['[fd00::]/8:443', 'fd00::1', 443, 'intranet.example', true],
    ['127.0.0.1:8080', '127.0.0.1', 8080, 'localhost', true],
    ['127.0.0.1:8080', '127.0.0.1', 8000, 'localhost', false],
    ['registry.test=127.0.0.1:4873', '127.0.0.1', 4873, 'registry.test', true],
    ['registry.test=127.0.0.1:4873', '127.0.0.1', 4873, 'other.test', false],
    ['registry.test=127.0.0.1:4873', '127.0.0.1', 4873, '127.0.0.1', false],
    // A network that happens to hold this machine opens the others only.
    ['126.0.0.0/7', '127.0.0.1', 8000, '127.0.0.1', false],
  ])('by %s of %s:%i as %s: %s', (text, address, port, host, opens) => {
    expect(isOpen([text], address, port, host)).toBe(opens)
  })

  test('a network without a port opens no address of this machine', () => {
    const own = Object.values(networkInterfaces())
      .flatMap((each) => each ?? [])
      .filter(({ family }) => family === 'IPv4')
    expect(own.length).toBeGreaterThan(0)
    for (const { address } of own) expect(isOpen(['1.0.0.0/0'], address, 8000)).toBe(false)
  })

  test.each([
    '127.0.0.1',
    '::1',
    '0.0.0.0',
    '0.0.0.0/0',
    '169.254.169.254:80',
    'x',
    'x=y',
    'x=10.0.0.0/8',
    '10.0.0.0/33',
    '',
  ])('the setting %j is refused', (text) => {
    expect(parsePrivateRule(text)).toHaveProperty('wrong')
  })
})

test.each(['169.254.169.254', 'fe80::1', 'fd00:ec2::254', '100.100.100.200', '168.63.129.16'])(
  '%s, which serves credentials of the machine, is never connected to',
  async (address) => {
    expect(isMetadata(address)).toBe(true)
    const reach = createOutboundConnector({ privateRules: [rule('1.0.0.0/0'), rule('[1::]/0')] })
    await expect(reach.connect(parseHost(address)!, 80, AbortSignal.timeout(PATIENCE_MS))).rejects.toBeInstanceOf(
      AddressDenied,
    )
  },
)

test.each([
  ['127.0.0.1', 'loopback'],
  ['127.8.8.8', 'loopback'],
  ['::1', 'loopback'],
  ['0.0.0.0', 'unspecified'],
  ['10.0.0.1', 'private'],
  ['192.168.1.1', 'private'],
  ['100.64.0.1', 'carrierGradeNat'],
  ['fd00::1', 'uniqueLocal'],
  ['224.0.0.1', 'multicast'],
  ['64:ff9b::7f00:1', 'rfc6052'],
  ['2002:7f00:1::', '6to4'],
])('%s is not connected to: it is %s', async (address, reason) => {
  const reach = createOutboundConnector({ privateRules: [] })
  await expect(reach.connect(parseHost(address)!, 80, AbortSignal.timeout(PATIENCE_MS))).rejects.toThrow(reason)
})

test('a name that resolves only to the machine’s own addresses is refused', async () => {
  const reach = createOutboundConnector({
    privateRules: [],
    resolve: async () => ['127.0.0.1', '::1', '::ffff:10.0.0.1'],
  })
  await expect(reach.connect(parseHost('rebound.test')!, 80, AbortSignal.timeout(PATIENCE_MS))).rejects.toThrow(
    'loopback',
  )
})
