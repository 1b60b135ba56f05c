/** Small rules of what is secret and who is who. */
import { expect, test } from 'vitest'
import { Problem } from '../../src/contract/problem.ts'
import { networkOf } from '../../src/security/client-network.ts'
import { createEndpointRules, isEndpointRule } from '../../src/security/endpoint-rules.ts'
import { isLoopback, isLoopbackText, isOwnAddress } from '../../src/security/own-address.ts'
import { refuseSecretsIn } from '../../src/security/refuse-secrets.ts'
import { secretsInHeader } from '../../src/security/secrets-in-header.ts'

test.each([
  ['192.0.2.7', '192.0.2.7'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::'],
  ['2001:db8:1:2:ffff::', '2001:db8:1:2::'],
  ['2001:db8:1:3::1', '2001:db8:1:3::'],
  ['no address', 'no address'],
])('a client at %s is counted as %s', (address, network) => {
  expect(networkOf(address)).toBe(network)
})

test.each<readonly [name: string, value: string, secrets: readonly string[]]>([
  ['Authorization', 'Bearer  abc def', ['Bearer  abc def', 'abc def']],
  ['X-Key', 'abc', ['abc']],
  ['X-Key', '4bc def', ['4bc def']],
  ['X-Key', 'abc ', ['abc ']],
  ...['Accept', 'ACCEPT-language', 'content-type', 'User-Agent', 'referer', 'HTTP-Referer', 'origin', 'X-Title'].map(
    (name) => [name, 'Bearer abc', []] as const,
  ),
  ...['x-openrouter-title', 'anthropic-version', 'OpenAI-Beta'].map((name) => [name, 'abc', []] as const),
  ...['x-accept', 'accepted', 'contents', 'my-user-agent', 'origins', 'x-version-key', 'beta'].map(
    (name) => [name, 'abc', ['abc']] as const,
  ),
])('of the header %s: %s these parts are secret: %j', (name, value, secrets) => {
  expect(secretsInHeader(name, value)).toEqual(secrets)
})

test('a field that has the value of a secret is refused by its name, without the value', () => {
  const redact = (text: string) => text.replaceAll('hunter2', '<secret:PIN>')
  expect(() => refuseSecretsIn({ title: 'fine', labels: { a: ['b', 3, null] } }, redact)).not.toThrow()
  const refused = { title: 'fine', labels: { a: ['b', 'is hunter2'] } }
  expect(() => refuseSecretsIn(refused, redact)).toThrow(Problem)
  expect(() => refuseSecretsIn(refused, redact)).toThrow(/^labels contains the value of a secret/)
  expect(() => refuseSecretsIn(refused, redact)).not.toThrow(/hunter2/)
})

test('a machine is itself at its loopback and unspecified addresses, and a name is not an address', () => {
  const local = ['127.0.0.1', '127.1.2.3', '::1', '::ffff:127.0.0.1']
  for (const address of local)
    expect([isLoopback(address), isLoopbackText(address), isOwnAddress(address)]).toEqual([true, true, true])
  for (const address of ['0.0.0.0', '::'])
    expect([isLoopback(address), isLoopbackText(address), isOwnAddress(address)]).toEqual([true, false, true])
  expect(isLoopback('192.0.2.7')).toBe(false)
  expect(isOwnAddress('192.0.2.7')).toBe(false)
  for (const text of ['localhost', '', '192.0.2.7']) expect(isLoopbackText(text)).toBe(false)
})

test.each([
  ['public', true],
  ['*.example.org', true],
  ['*.a.b-c.Example.org', true],
  ['https://example.org', true],
  ['http://127.0.0.1:8080', true],
  ['*', false],
  ['*.', false],
  ['*.*.org', false],
  ['*.-a.org', false],
  ['*.a-.org', false],
  [`*.${'a'.repeat(63)}`, true],
  [`*.${'a'.repeat(64)}`, false],
  [`*${'.a'.repeat(10)}`, true],
  [`*${'.a'.repeat(11)}`, false],
  ['a*.example.org', false],
  ['https://*.example.org', false],
  ['https://example.org/v1', false],
  ['https://example.org/?a', false],
  ['https://me@example.org', false],
  ['ftp://example.org', false],
  ['example.org', false],
])('%s may be in the list of endpoints: %s', (entry, isAllowed) => {
  expect(isEndpointRule(entry)).toBe(isAllowed)
})

test.each<[readonly string[], string, boolean]>([
  [['https://a.example'], 'https://a.example/v1', true],
  [['https://A.example:443/'], 'https://a.example', true],
  [['https://a.example'], 'http://a.example', false],
  [['https://a.example'], 'https://a.example:8443', false],
  [['https://a.example'], 'https://x.a.example', false],
  [['https://b.example', 'https://a.example'], 'https://a.example', true],
  [['*.A.example'], 'https://x.a.example:1', true],
  [['*.a.example'], 'http://x.y.a.example', true],
  [['*.a.example'], 'https://x.a.example.', true],
  [['*.a.example'], 'https://a.example', false],
  [['*.a.example'], 'https://xa.example', false],
  [['*.a.example'], 'https://x.a.example.org', false],
  [['*.a.example', 'https://b.example'], 'https://b.example', true],
  [[], 'https://a.example', false],
])('with the list %j a request to %s may go: %j', async (entries, url, mayGo) => {
  const refusal = await createEndpointRules(entries).refusal(url)
  expect(refusal).toBe(mayGo ? undefined : 'it is not in OPENHANDS_LLM_ALLOW')
})

test('with `public` in the list a request may go to what is listed and to public addresses', async () => {
  const lookup = async (name: string) => [{ address: name === 'in.example' ? '10.0.0.1' : '93.184.216.34', family: 4 }]
  const rules = createEndpointRules(['https://in.example', 'public'], lookup)
  const urls = ['https://in.example', 'http://in.example', 'https://out.example', 'http://10.0.0.1']
  const refusals = await Promise.all(urls.map((url) => rules.refusal(url)))
  expect(refusals.map((why) => why === undefined)).toEqual([true, false, true, false])
})

test('a connection to an origin that is not listed is refused under the name of what happened', async () => {
  const connect = await createEndpointRules(['https://a.example']).connector()
  const refused = await new Promise((resolve) =>
    connect({ protocol: 'https:', hostname: 'b.example', port: '443' }, (...[error]) => resolve(error)),
  )
  expect(refused).toMatchObject({ name: 'EndpointRefused', code: 'ENDPOINT_REFUSED' })
})
