import { describe, expect, test } from 'vitest'
import type { NetworkPolicy, ServerNetwork } from '../../src/contract/values/network.ts'
import { Problem } from '../../src/contract/problem.ts'
import { parseHost } from '../../src/network/host.ts'
import { decide, findExcess, parseRules } from '../../src/network/policy.ts'
import { checkPolicy, effectivePolicy, parsePolicySetting } from '../../src/network/server-policy.ts'

const OPEN: NetworkPolicy = { mode: 'open' }
const allowlist = (...allow: string[]): NetworkPolicy => ({ mode: 'allowlist', allow })

function rulesOf(policy: NetworkPolicy) {
  const rules = parseRules(policy)
  if ('wrong' in rules) throw new Error(rules.wrong)
  return rules
}

function verdict(own: NetworkPolicy, host: string, port = 443, ceiling = OPEN): string {
  return decide(rulesOf(own), rulesOf(ceiling), parseHost(host)!, port).decision
}

describe('an entry', () => {
  test.each<[entry: string, host: string, port: number, decision: string]>([
    ['api.example.com', 'api.example.com', 443, 'allow'],
    ['api.example.com', 'api.example.com', 80, 'allow'],
    ['api.example.com', 'api.example.com', 22, 'deny'],
    ['API.Example.com.', 'api.EXAMPLE.com', 443, 'allow'],
    ['api.example.com', 'api.example.com.', 443, 'allow'],
    ['api.example.com', 'example.com', 443, 'deny'],
    ['api.example.com', 'xapi.example.com', 443, 'deny'],
    ['api.example.com', 'api.example.com.evil.test', 443, 'deny'],
    ['api.example.com:22', 'api.example.com', 22, 'allow'],
    ['api.example.com:22', 'api.example.com', 443, 'deny'],
    ['api.example.com:*', 'api.example.com', 9999, 'allow'],
    ['*.example.org', 'a.example.org', 443, 'allow'],
    ['*.example.org', 'a.b.example.org', 443, 'allow'],
    ['*.example.org', 'example.org', 443, 'deny'],
    ['*.example.org', 'evilexample.org', 443, 'deny'],
    ['*.example.org:443', 'a.example.org', 80, 'deny'],
    ['*.münchen.example', 'a.xn--mnchen-3ya.example', 443, 'allow'],
    ['*', 'anything.example', 443, 'allow'],
    ['*', '203.0.113.7', 443, 'allow'],
    ['*', 'anything.example', 22, 'deny'],
    ['*:*', 'anything.example', 22, 'allow'],
    ['203.0.113.7', '203.0.113.7', 443, 'allow'],
    ['203.0.113.7', '0xcb007107', 443, 'allow'],
    ['203.0.113.7', '::ffff:203.0.113.7', 443, 'allow'],
    ['203.0.113.7', '203.0.113.8', 443, 'deny'],
    ['[2001:db8::1]:8443', '2001:DB8:0::1', 8443, 'allow'],
    ['2001:db8::1', '[2001:db8::1]', 443, 'allow'],
  ])('%s on %s:%i is %s', (entry, host, port, decision) => {
    expect(verdict(allowlist(entry), host, port)).toBe(decision)
  })

  test.each([
    '',
    ':80',
    'a:0',
    'a:65536',
    'a:x',
    'http://a',
    'a/b',
    '*.*.a',
    '*a.b',
    '*.1.2.3.4',
    'a b',
    '[::1',
    'a,b',
  ])('%j is refused', (entry) => {
    expect(parseRules(allowlist(entry))).toEqual({ wrong: entry })
  })
})

describe('a decision', () => {
  test('is allow in the mode open, and deny in the mode none', () => {
    expect(verdict(OPEN, 'example.com', 1)).toBe('allow')
    expect(verdict({ mode: 'none' }, 'example.com')).toBe('deny')
  })

  test('a denied host is refused although it is allowed, and without asking', () => {
    const policy: NetworkPolicy = { mode: 'allowlist', allow: ['*.example.org'], deny: ['bad.example.org'], ask: true }
    expect(verdict(policy, 'good.example.org')).toBe('allow')
    expect(verdict(policy, 'bad.example.org')).toBe('deny')
    expect(verdict(policy, 'other.example')).toBe('ask')
  })

  test('the ceiling applies, and users are not asked about what it refuses', () => {
    const asking: NetworkPolicy = { mode: 'allowlist', allow: ['a.example', 'b.example'], ask: true }
    expect(verdict(asking, 'a.example', 443, allowlist('a.example'))).toBe('allow')
    expect(verdict(asking, 'b.example', 443, allowlist('a.example'))).toBe('deny')
    expect(verdict(asking, 'c.example', 443, allowlist('c.example'))).toBe('ask')
    expect(verdict(OPEN, 'b.example', 443, allowlist('a.example'))).toBe('deny')
    expect(verdict(OPEN, 'a.example', 443, { mode: 'none' })).toBe('deny')
  })
})

describe('beneath a ceiling', () => {
  test.each<[own: NetworkPolicy, ceiling: NetworkPolicy, fits: boolean]>([
    [OPEN, OPEN, true],
    [OPEN, allowlist('*:*'), false],
    [allowlist('a.example'), { mode: 'none' }, false],
    [{ mode: 'none' }, allowlist(), true],
    [allowlist('a.example'), allowlist('a.example'), true],
    [allowlist('a.example:443'), allowlist('a.example'), true],
    [allowlist('a.example'), allowlist('a.example:443'), false],
    [allowlist('a.example:*'), allowlist('a.example'), false],
    [allowlist('a.b.example'), allowlist('*.example'), true],
    [allowlist('*.b.example'), allowlist('*.example'), true],
    [allowlist('*.example'), allowlist('*.b.example'), false],
    [allowlist('*'), allowlist('*.example'), false],
    [allowlist('*'), allowlist('*'), true],
    [allowlist('203.0.113.7:22'), allowlist('*:*'), true],
  ])('%j under %j: %s', (own, ceiling, fits) => {
    expect(findExcess(own, ceiling) === undefined).toBe(fits)
  })

  test('the stricter mode applies, also to policies set before', () => {
    const server: ServerNetwork = { default: { mode: 'none' }, ceiling: allowlist('a.example'), modes: [] }
    expect(effectivePolicy(OPEN, server).mode).toBe('allowlist')
    expect(effectivePolicy({ mode: 'none' }, server).mode).toBe('none')
    expect(effectivePolicy(undefined, server).mode).toBe('none')
  })

  test('the error names what a conversation may not have', () => {
    const server: ServerNetwork = {
      default: OPEN,
      ceiling: allowlist('a.example'),
      modes: ['none', 'allowlist', 'open'],
    }
    const codeOf = (policy: NetworkPolicy, on = server) => {
      try {
        checkPolicy(policy, on)
        return undefined
      } catch (error) {
        return error instanceof Problem ? `${error.code}: ${error.message}` : String(error)
      }
    }
    expect(codeOf(allowlist('a.example'))).toBeUndefined()
    expect(codeOf(OPEN)).toMatch(/^network_not_permitted: .*mode open is more than allowlist/)
    expect(codeOf(allowlist('b.example'))).toMatch(/^network_not_permitted: .*b\.example is not among/)
    expect(codeOf(allowlist('http://a.example'))).toMatch(/^invalid_request: .*http:\/\/a\.example is not a host/)
    expect(codeOf(allowlist('a.example'), { ...server, modes: ['open'] })).toMatch(/^network_mode_unavailable/)
  })
})

test.each<[text: string, policy: object]>([
  ['open', OPEN],
  ['none', { mode: 'none' }],
  ['allowlist', allowlist()],
  [
    'allowlist:a.example, *.b.example:443,[2001:db8::1]:22',
    allowlist('a.example', '*.b.example:443', '[2001:db8::1]:22'),
  ],
  ['closed', { wrong: expect.any(String) }],
  ['open:a.example', { wrong: expect.any(String) }],
  ['allowlist:a b', { wrong: expect.stringContaining('a b') }],
])('the setting %s is %j', (text, policy) => {
  expect(parsePolicySetting(text)).toEqual(policy)
})
