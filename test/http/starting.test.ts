/** While the server reads which conversations there are: what needs them waits, and is refused in the end, and nothing else. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { uuid7 } from '../../src/lib/uuid7.ts'
import { connectAs } from '../support/socket.ts'
import type { HttpBench } from './fixtures.ts'
import { KEY, setHttp } from './fixtures.ts'

const document = JSON.parse(readFileSync(join(import.meta.dirname, '../../openapi/openapi.json'), 'utf8')) as {
  paths: Record<string, Record<string, { security?: unknown[] }>>
}
const NEEDS_NONE = new Set(['/info', '/metrics'])
/** Open routes that a request without a query, or without a body, does not fit. */
const UNFIT: Readonly<Record<string, number>> = { '/mcp/oauth/callback': 409, '/logins': 400 }

const http = await setHttp({ http: { startWaitMs: 20 } })
const listening = await http.listen()
afterAll(() => http[Symbol.asyncDispose]())
http.readiness.isStarting = true

const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, { security }]) => ({ method, path, isPublic: security?.length === 0 })),
)

test.each(operations)('$method $path', async ({ method, path, isPublic }) => {
  const url = path.replaceAll(/\{\w+\}/g, () => uuid7())
  const answer = await http.call(method.toUpperCase(), url)
  if (isPublic || NEEDS_NONE.has(path)) return expect(answer.status).toBe(UNFIT[path] ?? 200)
  expect(answer).toMatchObject({ status: 503, headers: { 'retry-after': '1' } })
  // HEAD has no body.
  if (method !== 'head') expect(answer.body).toMatchObject({ error: 'unavailable', details: { reason: 'starting' } })
})

/** Resolves to false when requests that do not have to wait, sent later, have been answered. */
async function othersAnswered({ call }: HttpBench): Promise<false> {
  for (let times = 0; times < 20; times++) expect((await call('GET', '/info')).status).toBe(200)
  return false
}

test('a request that comes shortly before the start is over is answered', async () => {
  await using patient = await setHttp()
  patient.readiness.isStarting = true
  const created = patient.call('POST', '/conversations', { llm_config: { model: 'none' } })
  const listed = patient.call('GET', '/conversations')
  const isAnswered = Promise.race([created, listed]).then(() => true)
  expect(await Promise.race([isAnswered, othersAnswered(patient)])).toBe(false)
  patient.readiness.isStarting = false
  expect((await created).status).toBe(201)
  expect((await listed).status).toBe(200)
})

test('a WebSocket that comes shortly before the start is over is opened', async () => {
  await using patient = await setHttp()
  const url = await patient.listen()
  patient.readiness.isStarting = true
  const connecting = connectAs(url, '/firehose', { headers: { authorization: `Bearer ${KEY}` } })
  const isOpen = connecting.then(() => true)
  expect(await Promise.race([isOpen, othersAnswered(patient)])).toBe(false)
  patient.readiness.isStarting = false
  const socket = await connecting
  socket.close()
})

test('without a key the response reveals nothing more', async () => {
  expect((await http.call('GET', '/conversations', undefined, { authorization: '' })).status).toBe(401)
})

test.each(['/firehose', `/conversations/${uuid7()}/ws`])(
  'the socket %s is refused before the upgrade',
  async (path) => {
    const connecting = connectAs(listening, path, { headers: { authorization: `Bearer ${KEY}` } })
    await expect(connecting).rejects.toMatchObject({ status: 503, body: { error: 'unavailable' } })
    // A browser's, whose key would be its first frame.
    await expect(connectAs(listening, path, {})).rejects.toMatchObject({ status: 503 })
  },
)

test('metrics do not count conversations that are not read yet', async () => {
  expect((await http.call('GET', '/metrics')).text).not.toMatch(/^agent_server_conversations\{/m)
})
