/** Servers of models at ports of this machine, over real HTTP. */
import { createServer } from 'node:net'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { findLocalEndpoints, LOCAL_SERVERS } from '../../../src/cli/endpoints/local-endpoints.ts'
import { PATIENCE_MS } from '../../support/patience.ts'
import { freePort } from '../../support/server.ts'
import { listOf, startModelServer } from '../first-start/support/model-server.ts'

const find = (port: number, { signal } = new AbortController()) =>
  findLocalEndpoints([{ label: 'Ollama', port }], { signal, timeoutMs: PATIENCE_MS })

test('Ollama, LM Studio and vLLM are looked for at the ports that they have by default', () => {
  expect(LOCAL_SERVERS).toEqual([
    { label: 'Ollama', port: 11434 },
    { label: 'LM Studio', port: 1234 },
    { label: 'vLLM', port: 8000 },
  ])
})

test.each(['127.0.0.1', '::1'])(
  'a server that listens at %s is found with its models, and gets no key',
  async (host) => {
    await using server = await startModelServer(
      (path) => (path === '/v1/models' ? listOf('one', 'two') : [404, {}]),
      host,
    )
    const [found] = await find(server.port)
    expect(found).toMatchObject({ label: 'Ollama', models: [{ id: 'one' }, { id: 'two' }] })
    expect(found?.baseUrl).toBe(`http://${host === '::1' ? '[::1]' : host}:${server.port}/v1`)
    expect(server.asked.toSorted()).toEqual(['GET /alive', 'GET /v1/models'])
  },
)

test('a server that answers as an agent-server is left out, also if it has models', async () => {
  await using server = await startModelServer((path) =>
    path === '/alive' ? [200, '{ "status": "ok" }\n'] : listOf('agents'),
  )
  expect(await find(server.port)).toEqual([])
})

test.each([
  ['redirects', () => [302, ''] as const],
  ['wants a key', () => [401, {}] as const],
  ['answers with a page', () => [200, '<html>'] as const],
  ['answers with another object', () => [200, { status: 'ok' }] as const],
])('a server that %s is left out, and its answer is not followed', async (_what, answer) => {
  await using server = await startModelServer(answer)
  expect(await find(server.port)).toEqual([])
  expect(server.asked.filter((each) => each.includes('elsewhere'))).toEqual([])
})

test('a model whose name is not as it looks is left out', async () => {
  const controls = ['red \u001b[31m', 'bell\u0007', 'two\nlines', 'next\u0085line', 'two\u2028lines']
  const unseen = ['gpt\u200b', 'safe\u202exe', 'tag\u{e0041}', 'half\ud800', '\u2800', '\u3164', '  ', 'end ']
  const names = [...controls, ...unseen]
  await using server = await startModelServer((path) =>
    path === '/v1/models' ? listOf(...names, 'modèle:8b') : [404, {}],
  )
  expect((await find(server.port)).map(({ models }) => models.map(({ id }) => id))).toEqual([['modèle:8b']])
})

test('a list that does not end is not read to its end', async () => {
  await using server = await startModelServer((path, _key, response) => {
    if (path !== '/v1/models') return [404, {}]
    response.writeHead(200, { 'content-type': 'application/json' })
    const more = () => {
      while (response.write(Buffer.alloc(65_536, ' ')));
    }
    response.on('drain', more).on('error', () => {})
    more()
    return undefined
  })
  expect(await find(server.port)).toEqual([])
})

test('a program that never answers holds nobody up', async () => {
  const silent = createServer().listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const abort = new AbortController()
  silent.on('connection', (socket) => {
    socket.on('error', () => {})
    abort.abort()
  })
  expect(await find((silent.address() as AddressInfo).port, abort)).toEqual([])
  silent.close()
})

test('where nothing listens nothing is found', async () => {
  expect(await find(await freePort())).toEqual([])
})
