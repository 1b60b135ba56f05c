/** Connections to models: one that fails harms no other, and none holds up who waits for it. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { createServer as createNetServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { buildConnector } from 'undici'
import { createPooledFetch } from '../../src/llm/connection/pooled-fetch.ts'
import { createEndpointRules, isEndpointRule } from '../../src/security/endpoint-rules.ts'
import { startScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import { startSilentEndpoint } from '../support/silent-endpoint.ts'
import { ask, chatWith } from './asking.ts'
import { HttpLlm } from '../../src/llm/http-llm.ts'
import { PATIENCE_MS } from '../support/patience.ts'

/** Of `localhost`, signed by itself, for a hundred years. */
const fixture = (name: string) => readFileSync(join(import.meta.dirname, '../support/tls', name))
const TLS = { key: fixture('localhost-key.pem'), cert: fixture('localhost-cert.pem') }

async function startSecureServer() {
  const server = createServer(TLS, (_request, response) => void response.end('{}')).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `https://localhost:${(server.address() as AddressInfo).port}/`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

const trusting = () => createPooledFetch({ connector: async () => buildConnector({ ca: TLS.cert }) })

const post = (headers: Record<string, string>, signal = AbortSignal.timeout(PATIENCE_MS)) =>
  ({ method: 'POST', body: Buffer.from('{}'), headers, signal }) as unknown as RequestInit

test.each([
  ['a value', { authorization: 'Bearer sk-…' }],
  ['a name', { 'x y': '1' }],
  ['a header of the connection', { 'transfer-encoding': 'x' }],
])('after a request with %s that cannot be sent, an https endpoint still answers everybody', async (_what, headers) => {
  await using server = await startSecureServer()
  const send = trusting()
  await expect(send(server.url, post(headers))).rejects.toThrow()
  const answers = await Promise.all([1, 2, 3].map(() => send(server.url, post({}))))
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
})

test.each([
  ['a key', { api_key: 'sk-…' }],
  ['the name of a header', { extra_headers: { 'x y': '1' } }],
  ['the value of a header', { extra_headers: { 'x-y': 'a\nb' } }],
  ['a header of the connection', { extra_headers: { 'Content-Length': '5' } }],
])('%s that cannot be sent is an error that does not repeat it', async (_what, config) => {
  const { error } = await ask(new HttpLlm({ config: { model: 'm', base_url: 'http://127.0.0.1:9/v1', ...config } }))
  expect(error).toMatchObject({ type: 'config', retryable: false })
  expect(error?.message).toContain('cannot be sent')
  expect(error?.message).not.toMatch(/…|x y|content-length/i)
})

describe('an endpoint that accepts and stays silent', () => {
  test.each(['http', 'https'])('%s: an abort takes effect immediately', async (scheme) => {
    await using endpoint = await startSilentEndpoint()
    const stop = new AbortController()
    const stopped = new Error('stopped')
    const asked = createPooledFetch()(`${scheme}://127.0.0.1:${endpoint.port}/`, post({}, stop.signal))
    await endpoint.connected
    stop.abort(stopped)
    // Waiting for the handshake, which is given up after ten seconds, would end in another error.
    await expect(asked).rejects.toBe(stopped)
  })

  test.each(['http', 'https'])('%s: llm_config.timeout holds', async (scheme) => {
    await using endpoint = await startSilentEndpoint()
    const config = { model: 'm', base_url: `${scheme}://127.0.0.1:${endpoint.port}/v1`, timeout: 0.5, num_retries: 0 }
    const { error } = await ask(new HttpLlm({ config }))
    expect(error?.message).toContain('did not finish within 0.5 s')
  })
})

test('an answer that stops being HTTP is a failure of the connection, and the request is repeated', async () => {
  const head = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n'
  let asked = 0
  const server = createNetServer((socket) =>
    socket
      .on('error', () => {})
      .on('data', () => {
        asked++
        socket.write(`${head}no size\r\n`)
      }),
  ).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const base_url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  const llm = new HttpLlm({ config: { model: 'm', base_url, num_retries: 1 }, retryBaseMs: 1 })
  expect((await ask(llm)).error).toMatchObject({ type: 'network', retryable: true })
  expect(asked).toBe(2)
  server.close()
})

describe('the endpoints that the operator allows', () => {
  const refusal = async (allowed: string, url: string, addresses: readonly string[] = ['93.184.215.14']) =>
    await createEndpointRules(allowed.split(','), async () =>
      addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    ).refusal(url)

  test.each([
    ['https://api.openai.com', 'https://api.openai.com/v1'],
    ['https://API.openai.com/', 'https://api.openai.com/v1'],
    ['https://api.openai.com', 'https://api.openai.com:443/v1'],
    ['https://api.openai.com:443', 'https://api.openai.com/v1'],
    ['http://127.0.0.1:8001', 'http://127.0.0.1:8001/v1'],
    ['http://[::1]:8001', 'http://[::1]:8001/v1'],
    ['*.example.org', 'https://a.example.org/v1'],
    ['*.example.org', 'http://a.b.example.org:8080/v1'],
    ['public', 'https://api.example.net/v1'],
    ['public', 'https://8.8.8.8/v1'],
    ['public,http://127.0.0.1:8001', 'http://127.0.0.1:8001/v1'],
  ])('%s: %s', async (allowed, url) => expect(await refusal(allowed, url)).toBeUndefined())

  test.each([
    ['https://api.openai.com', 'http://api.openai.com/v1'],
    ['https://api.openai.com', 'https://api.openai.com:8443/v1'],
    ['https://api.openai.com', 'https://api.openai.com.evil.example/v1'],
    ['https://api.openai.com', 'https://user@evil.example/v1'],
    ['*.example.org', 'https://example.org/v1'],
    ['*.example.org', 'https://badexample.org/v1'],
    ['http://127.0.0.1:8001', 'http://localhost:8001/v1'],
    ['public', 'http://127.0.0.1:8001/v1'],
    ['public', 'http://169.254.169.254/v1'],
    ['public', 'http://168.63.129.16/v1'],
    ['public', 'http://[::ffff:10.0.0.1]/v1'],
    ['public', 'http://[fd00:ec2::254]/v1'],
  ])('%s: not %s', async (allowed, url) => expect(await refusal(allowed, url)).toMatch(/not in|not a public one/))

  test('public: not a name that leads to loopback', async () => {
    expect(await refusal('public', 'https://a.example/', ['127.0.0.1'])).toContain('not a public one')
    expect(await refusal('public', 'https://a.example/', ['::1', '10.0.0.1'])).toContain('not a public one')
  })

  test.each([
    'https://a.example/v1',
    'https://me@a.example',
    'https://a.example?x',
    'a.example',
    '*',
    '*.',
    '*a.example',
    'ftp://a.example',
    'Public',
    'https://*.a.example',
  ])('%s is not a valid entry of the list', (entry) => expect(isEndpointRule(entry)).toBe(false))

  test('are judged again when connecting: a name that led elsewhere a moment ago leads nowhere', async () => {
    await using model = await startScriptedModel([{ text: 'here' }])
    const { port } = new URL(model.baseUrl)
    const rules = createEndpointRules(['public'], async () => [{ address: '127.0.0.1', family: 4 }])
    const chat = (host: string, allowed = rules) =>
      chatWith(
        model,
        { base_url: `http://${host}:${port}/v1` },
        { fetch: createPooledFetch({ connector: () => allowed.connector() }) },
      )
    for (const host of ['rebound.example', '127.0.0.1', '[::ffff:127.0.0.1]']) {
      const { error } = await ask(chat(host))
      expect(error, host).toMatchObject({ type: 'config', retryable: false })
      expect(error?.message).toMatch(/not a public one.*OPENHANDS_LLM_ALLOW/)
    }
    const { error } = await ask(chat('127.0.0.1', createEndpointRules(['https://a.example'])))
    expect(error?.message).toContain('not in OPENHANDS_LLM_ALLOW')
    expect(model.requests).toEqual([])
    const { answer } = await ask(chat('127.0.0.1', createEndpointRules([`http://127.0.0.1:${port}`])))
    expect(answer?.text).toBe('here')
  })
})
