/** To which addresses the server connects on behalf of clients. */
import { expect, test } from 'vitest'
import { canonicalAddress, createAddressRules, isAddressRule } from '../../src/security/public-address.ts'

const nowhere = () => false

test.each([
  ['93.184.216.34', undefined],
  ['2606:2800:220:1::1', undefined],
  ['::ffff:93.184.216.34', undefined],
  ['127.0.0.1', 'loopback'],
  ['::1', 'loopback'],
  ['::ffff:127.0.0.1', 'loopback'],
  ['10.1.2.3', 'private'],
  ['172.16.0.1', 'private'],
  ['192.168.0.1', 'private'],
  ['169.254.169.254', 'linkLocal'],
  ['fe80::1', 'linkLocal'],
  ['fc00::1', 'uniqueLocal'],
  ['100.64.0.1', 'carrierGradeNat'],
  ['0.0.0.0', 'unspecified'],
  ['::', 'unspecified'],
  ['255.255.255.255', 'broadcast'],
  ['224.0.0.1', 'multicast'],
  ['168.63.129.16', 'platform'],
  ['4000::1', 'unassigned'],
  ['1fff::1', 'unassigned'],
])('%s is refused as %s', (address, range) => {
  expect(createAddressRules([], nowhere).refusal(address, 'host')).toBe(
    range && `its address is not a public one (${range})`,
  )
})

test('an address of this machine is refused, also a public one, unless it is allowed', () => {
  const isOwn = (address: string) => address === '93.184.216.34'
  expect(createAddressRules([], isOwn).refusal('::ffff:93.184.216.34', 'host')).toMatch(/own machine/)
  expect(createAddressRules([], isOwn).refusal('93.184.216.35', 'host')).toBeUndefined()
  expect(createAddressRules(['93.184.216.34'], isOwn).refusal('93.184.216.34', 'host')).toBeUndefined()
})

test.each<[string, string, string, boolean]>([
  ['10.0.0.1', '10.0.0.1', 'host', true],
  ['10.0.0.1', '10.0.0.2', 'host', false],
  ['10.0.0.1', '::ffff:10.0.0.1', 'host', true],
  ['::ffff:10.0.0.1', '10.0.0.1', 'host', true],
  ['10.0.0.0/30', '10.0.0.3', 'host', true],
  ['10.0.0.0/30', '10.0.0.4', 'host', false],
  ['fc00::1', 'fc00::1', 'host', true],
  ['fc00::1', 'fc00::2', 'host', false],
  ['fc00::/64', 'fc00::2', 'host', true],
  ['::/0', '10.0.0.1', 'host', false],
  ['build.internal', '10.0.0.1', 'Build.Internal.', true],
  ['Build.Internal.', '10.0.0.1', 'build.internal', true],
  ['build.internal', '10.0.0.1', 'x.build.internal', false],
  ['build.internal', '10.0.0.1', 'build.internal.org', false],
])('with %s in the list, %s of %s is allowed: %j', (entry, address, host, isAllowed) => {
  expect(createAddressRules(['192.0.2.1', entry], nowhere).refusal(address, host) === undefined).toBe(isAllowed)
})

test.each([
  ['10.0.0.1', true],
  ['fc00::1', true],
  ['10.0.0.0/8', true],
  ['fc00::/7', true],
  ['10.0.0.0/33', false],
  ['10.0/8', false],
  ['a.example/8', false],
  ['localhost', true],
  ['a-b_c.example', true],
  ['a.1b', true],
  ['10.0.0', false],
  ['a.1', false],
  ['1', false],
  ['-a.example', false],
  ['a-.example', false],
  ['a..example', false],
  ['a.example.', false],
  ['a b', false],
  ['', false],
  [`${'a.'.repeat(126)}a`, true],
  [`${'a.'.repeat(127)}a`, false],
])('%s may be in the list of addresses: %j', (entry, isValid) => {
  expect(isAddressRule(entry)).toBe(isValid)
})

test('an address has one form', () => {
  expect(['::ffff:10.0.0.1', '10.0.0.1', '2001:DB8:0::1'].map(canonicalAddress)).toEqual([
    '10.0.0.1',
    '10.0.0.1',
    '2001:db8::1',
  ])
})
