/**
 * The credential for programs of the same user is accepted where only they come: on the local listener. Who has read it
 * elsewhere, such as in a backup of the data directory, can do nothing with it over the network.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { Agent, request, type RequestOptions } from 'node:http'
import { text } from 'node:stream/consumers'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { KEY, startServer } from '../support/server.ts'
import { connectAs, RefusedUpgrade } from '../support/socket.ts'

const WS = '/conversations/ws?create=frame'

type Place = Pick<RequestOptions, 'socketPath' | 'host' | 'port' | 'agent'>

async function recordIn(dataDir: string): Promise<{ place: Place; credential: string }> {
  const { address, credential } = JSON.parse(await readFile(join(dataDir, 'local.json'), 'utf8'))
  if (address.startsWith('unix:')) return { place: { socketPath: address.slice('unix:'.length) }, credential }
  const { hostname: host, port } = new URL(address)
  return { place: { host, port }, credential }
}

async function ask(place: Place, key: string, headers: Record<string, string> = {}): Promise<number> {
  const asked = request({ ...place, path: '/info', headers: { authorization: `Bearer ${key}`, ...headers } })
  const answered = Promise.withResolvers<number>()
  asked.on('error', answered.reject).on('response', (response) => {
    text(response).then(() => answered.resolve(response.statusCode ?? 0), answered.reject)
  })
  asked.end()
  return await answered.promise
}

/** What a reverse proxy adds, and what a client can write. */
const FORWARDED = [
  { 'x-forwarded-for': '127.0.0.1', 'x-real-ip': '127.0.0.1', 'x-forwarded-host': 'localhost' },
  { forwarded: 'for="unix:/server.sock";by="unix:/server.sock";host=localhost' },
  { host: 'localhost', 'x-forwarded-for': 'unix:' },
]

async function expectOnlyLocal(dataDir: string, url: string): Promise<void> {
  const { place, credential } = await recordIn(dataDir)
  const { hostname: host, port } = new URL(url)
  expect([await ask(place, credential), await ask(place, KEY), await ask(place, `${credential}x`)]).toEqual([
    200, 200, 401,
  ])
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  // A connection on which the master key was accepted, and on which others come from a proxy.
  expect(await ask({ host, port, agent }, KEY)).toBe(200)
  for (const headers of [{}, ...FORWARDED]) {
    expect(await ask({ host, port, agent }, credential, headers), JSON.stringify(headers)).toBe(401)
    expect(await ask({ host, port }, credential, headers), JSON.stringify(headers)).toBe(401)
  }
  expect(await ask({ host, port, agent }, KEY), 'the same connection').toBe(200)
  agent.destroy()
}

test('the local credential is accepted on the local socket, and on no other connection', async () => {
  await using server = await startServer({ env: { OPENHANDS_TRUST_PROXY: '127.0.0.1' } })
  await expectOnlyLocal(server.dataDir, server.url)
  const { place, credential } = await recordIn(server.dataDir)
  const headers = { authorization: `Bearer ${credential}` }
  const local = await connectAs(`ws+unix:${place.socketPath}:`, WS, { headers })
  local.close()
  const refused = connectAs(server.url, WS, { headers })
  await expect(refused).rejects.toEqual(expect.any(RefusedUpgrade))
  const browser = await connectAs(server.url, WS, {})
  browser.say({ type: 'auth', token: credential })
  expect(await browser.until(({ type }) => type === 'error')).toMatchObject({ error: 'unauthorized' })
})

test('the same holds without a socket, where the local listener has its own address', async () => {
  const env = { TMPDIR: '/proc/nowhere', OPENHANDS_ISOLATION: 'none' }
  const prepare = async (dataDir: string) => {
    await mkdir(dataDir, { recursive: true })
    await writeFile(join(dataDir, 'local'), 'a file in the place of the directory')
  }
  await using server = await startServer({ env, prepare })
  await expect.poll(server.output).toContain('there is no local socket')
  await expectOnlyLocal(server.dataDir, server.url)
})
