/** The configurations of nginx and Caddy to which docs/install.md leads, in front of a real server, over TLS. */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { get } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { NGINX, findCommand } from '../../scripts/provide.mjs'
import { PATIENCE_MS } from '../support/patience.ts'
import { KEY, freePort, startServer } from '../support/server.ts'
import type { TestServer } from '../support/server.ts'
import { connect } from '../support/socket.ts'
import { subscribe } from '../support/stream.ts'

const ROOT = join(import.meta.dirname, '../..')
const CERTIFICATE = join(ROOT, 'test/support/tls/localhost-cert.pem')
const CERTIFICATE_KEY = join(ROOT, 'test/support/tls/localhost-key.pem')
const UPLOAD_BYTES = 20 * 1024 * 1024

type Place = { readonly home: string; readonly port: number; readonly upstream: string }
type Proxy = { readonly command: string; readonly args: readonly string[]; readonly config: string }

const doc = await readFile(join(ROOT, 'docs/install.md'), 'utf8')
const nginxSite = await readFile(join(ROOT, 'examples/deploy/nginx.conf'), 'utf8')
const [, caddySite = ''] = /^```caddyfile\n(.*?)^```/ms.exec(doc)!

/** What is replaced is the address, the port and the certificate of the example. All else is as it is there. */
function nginxAt({ home, port, upstream }: Place): Proxy {
  const site = nginxSite
    .replace('listen 443 ssl', `listen 127.0.0.1:${port} ssl`)
    .replace('127.0.0.1:8000', upstream)
    .replace(/(ssl_certificate +).*;/, `$1"${CERTIFICATE}";`)
    .replace(/(ssl_certificate_key +).*;/, `$1"${CERTIFICATE_KEY}";`)
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${home}/${name};`,
  )
  const config = `daemon off; pid ${home}/pid; error_log stderr; ${process.getuid?.() === 0 ? 'user root;' : ''}
events {}
http { access_log off; ${temporary.join(' ')}
${site}
}`
  const path = join(home, 'nginx.conf')
  return { command: findCommand(NGINX)!, args: ['-e', 'stderr', '-c', path], config }
}

function caddyAt({ home, port, upstream }: Place): Proxy {
  const site = caddySite
    .replace('agents.example.com {', `https://127.0.0.1:${port} {\n\ttls "${CERTIFICATE}" "${CERTIFICATE_KEY}"`)
    .replace('127.0.0.1:8000', upstream)
  const config = `{\n\tadmin off\n\tauto_https disable_redirects\n}\n${site}`
  return {
    command: findCommand(['caddy'])!,
    args: ['run', '--adapter', 'caddyfile', '--config', join(home, 'caddy.conf')],
    config,
  }
}

let server: TestServer
let id: string
beforeAll(async () => {
  // The certificate of the tests is signed by nobody.
  vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0')
  server = await startServer({ env: { OPENHANDS_TRUST_PROXY: '127.0.0.1' } })
  id = (await server.call('POST', '/conversations', { llm_config: { model: 'none' } })).body.id
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  vi.unstubAllEnvs()
})

describe.each([
  ['nginx', nginxAt],
  ['caddy', caddyAt],
])('%s as docs/install.md configures it', (name, proxyAt) => {
  let url: string
  let home: string
  let stop: () => Promise<void>

  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), `agent-server-${name}-`))
    const port = await freePort()
    url = `https://127.0.0.1:${port}`
    const { command, args, config } = proxyAt({ home, port, upstream: new URL(server.url).host })
    await writeFile(join(home, `${name}.conf`), config)
    const env = { PATH: process.env['PATH'], HOME: home, XDG_DATA_HOME: home, XDG_CONFIG_HOME: home }
    const child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
    const said: Buffer[] = []
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece: Buffer) => said.push(piece))
    stop = async () => {
      if (child.exitCode !== null) return
      child.kill('SIGTERM')
      await once(child, 'close')
    }
    const isAlive = () => fetch(`${url}/alive`).catch((cause) => expect.fail(`${cause}: ${said.join('')}`))
    await vi.waitFor(async () => expect((await isAlive()).status).toBe(200), { timeout: PATIENCE_MS })
  })
  afterAll(async () => {
    await stop()
    await rm(home, { recursive: true, force: true })
  })

  const report = (event: string) => server.call('POST', `/conversations/${id}/events`, { name: event })

  test('passes on each event while the stream is open', async () => {
    const stream = await subscribe(url, `/conversations/${id}/events/stream`)
    for (const event of ['first', 'second']) {
      await report(event)
      expect(await stream.until(({ data }) => data.name === event)).toBeDefined()
    }
    stream.close()
  })

  test('passes on a WebSocket in both directions', async () => {
    const socket = await connect(url, `/conversations/${id}/ws`)
    await socket.until(({ type }) => type === 'ready')
    socket.say({ type: 'message', id: 'm1', message: { role: 'user', content: 'hello' } })
    expect(await socket.until((frame) => frame.id === 'm1')).toMatchObject({ type: 'ack' })
    socket.close()
    await socket.closed
  })

  test('takes an upload of 20 MB', async () => {
    const headers = { authorization: `Bearer ${KEY}` }
    const path = `${url}/conversations/${id}/files/${name}.bin`
    const { status } = await fetch(path, { method: 'PUT', headers, body: randomBytes(UPLOAD_BYTES) })
    expect(status).toBe(201)
    const { headers: stored } = await fetch(path, { method: 'HEAD', headers })
    expect(Number(stored.get('content-length'))).toBe(UPLOAD_BYTES)
  })

  test('keeps the id of a request, and tells the address of the client', async () => {
    const requestId = `from-client-of-${name}`
    const headers = { authorization: `Bearer ${KEY}`, 'x-request-id': requestId }
    const [response] = await once(get(`${url}/info`, { headers, localAddress: '127.0.0.2' }), 'response')
    response.resume()
    expect(response.headers['x-request-id']).toBe(requestId)
    const logged = () =>
      server
        .output()
        .split('\n')
        .find((line) => line.includes(requestId))
    await expect.poll(logged).toContain('"address":"127.0.0.2"')
  })
})
