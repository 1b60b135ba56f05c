/** Requests that are under way when their key is revoked: they end at once, and tell nothing that happens afterwards. */
import { request } from 'node:http'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { afterAll, expect, test } from 'vitest'
import { realShells } from '../conversations/fixtures.ts'
import { setHttp } from './fixtures.ts'

const NEVER_MS = 60_000

const http = await setHttp({
  script: [{ text: 'said after the end of the key', delay_ms: NEVER_MS }],
  deps: { createShells: realShells() },
})
afterAll(() => http[Symbol.asyncDispose]())
const url = await http.listen()
const id = await http.create()

async function makeKey() {
  const { body } = await http.call('POST', '/keys', { name: 'a test', scopes: ['read', 'write', 'commands', 'files'] })
  return { id: body.id as string, header: { authorization: `Bearer ${body.key}` } }
}
const revoke = (key: string) => http.call('DELETE', `/keys/${key}`)

/** Sends the head and a first piece of the body, and leaves the request open. */
function begin(method: string, path: string, headers: Record<string, string>, piece?: string) {
  const sent = request(`${url}${path}`, { method, headers })
  sent.on('error', () => {}) // a refused upload is cut off
  if (piece === undefined) sent.end()
  else sent.write(piece)
  const answered = once(sent, 'response').then(([response]) => response as IncomingMessage)
  return { answered }
}

test('a wait for a run ends with 401, and the run continues', async () => {
  const key = await makeKey()
  const talk = await http.create({ initial_message: { role: 'user', content: 'hello' } })
  const waiting = http.call('POST', `/conversations/${talk}/run`, { wait: true }, key.header)
  await expect.poll(async () => (await http.call('GET', `/conversations/${talk}`)).body.status).toBe('running')
  await revoke(key.id)
  expect(await waiting).toMatchObject({ status: 401, body: { error: 'unauthorized' } })
  expect((await http.call('GET', `/conversations/${talk}`)).body.status).toBe('running')
  await http.call('DELETE', `/conversations/${talk}`)
})

test('a wait for the output of a command ends with 401', async () => {
  const key = await makeKey()
  const { body } = await http.call('POST', `/conversations/${id}/commands`, { command: 'cat', background: true })
  const path = `/conversations/${id}/commands/${body.command_id}`
  const { answered } = begin('GET', `${path}/output?wait=30`, key.header)
  await expect.poll(() => http.bench.logged.join('')).toContain('POST')
  await revoke(key.id)
  expect((await answered).statusCode).toBe(401)
  await http.call('DELETE', path)
})

test('the result of a command in the foreground is not returned', async () => {
  const key = await makeKey()
  const running = http.call(
    'POST',
    `/conversations/${id}/commands`,
    { command: 'touch began; until [ -e go ]; do sleep 0.05; done; echo late' },
    key.header,
  )
  await expect.poll(async () => (await http.call('GET', `/conversations/${id}/file-info/began`)).status).toBe(200)
  await revoke(key.id)
  await http.call('PUT', `/conversations/${id}/files/go`, 'x')
  const { status, text } = await running
  expect(status, text).toBe(401)
  expect(text).not.toContain('late')
})

test('an upload is cut off, and nothing is written', async () => {
  const key = await makeKey()
  const path = `/conversations/${id}/files/upload.txt`
  const { answered } = begin('PUT', path, { ...key.header, 'content-type': 'text/plain' }, 'half of it')
  await expect.poll(async () => (await http.call('GET', `/keys/${key.id}`)).body.last_used_at).toBeTruthy()
  const outcome = expect(answered).rejects.toThrow('socket hang up')
  await revoke(key.id)
  await outcome
  expect((await http.call('GET', path)).status).toBe(404)
})

test('a download is cut off', async () => {
  const key = await makeKey()
  const path = `/conversations/${id}/files/big`
  await http.call('POST', `/conversations/${id}/commands`, { command: 'truncate -s 1G big' })
  const { answered } = begin('GET', path, key.header)
  const response = await answered
  expect(response.statusCode).toBe(200)
  const ended = Promise.race([once(response, 'aborted'), once(response, 'error')])
  await revoke(key.id)
  response.resume()
  await ended
})
