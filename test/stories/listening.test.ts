/** Which addresses a server holds: no other program of the machine can stand where its clients send the key. */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { KEY, freePort, launch, startServer } from '../support/server.ts'
import { connect as connectSocket } from '../support/socket.ts'

let home: string
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'agent-server-listening-'))
})
afterAll(() => rm(home, { recursive: true, force: true }))

/** Resolves to what the system says when somebody else listens there; undefined when it lets them. */
async function takeover(port: number, host: string): Promise<string | undefined> {
  const thief = createServer().listen({ port, host, ipv6Only: true })
  const fault = await once(thief, 'listening').then(
    () => undefined,
    (error: NodeJS.ErrnoException) => error.code,
  )
  if (fault === undefined) thief.close()
  return fault
}

const BOTH = ['127.0.0.1', '[::1]']

describe.each([
  ['the default', '0.0.0.0'],
  ['--generate-key', 'localhost'],
  ['every address', '::'],
])('with %s (%s)', (_, host) => {
  test('both loopback addresses answer, and neither can be taken', async () => {
    await using server = await startServer({ env: { OPENHANDS_SERVER_HOST: host } })
    const port = Number(new URL(server.url).port)
    for (const address of BOTH) {
      const response = await fetch(`http://${address}:${port}/info`, { headers: { authorization: `Bearer ${KEY}` } })
      expect(response.status, address).toBe(200)
      expect((await fetch(`http://${address}:${port}/info`)).status, address).toBe(401)
    }
    for (const address of ['127.0.0.1', '0.0.0.0', '::1', '::']) {
      expect(await takeover(port, address), address).toBe('EADDRINUSE')
    }
    expect(server.output()).not.toContain('is not in use by this server')
  })

  test.each(['127.0.0.1', '::1'])('the start is refused when another program has the port on %s', async (taken) => {
    const port = await freePort()
    const other = createServer().listen({ port, host: taken, ipv6Only: true })
    await once(other, 'listening')
    const { exited, output } = launch(['serve'], {
      env: {
        OPENHANDS_MASTER_KEY: KEY,
        OPENHANDS_DATA_DIR: join(home, 'data'),
        OPENHANDS_SERVER_HOST: host,
        OPENHANDS_SERVER_PORT: String(port),
      },
      cwd: home,
    })
    expect(await exited, output()).toBe(1)
    other.close()
    const fault = output()
      .split('\n')
      .filter((line) => line.startsWith('agent-server:'))
    expect(fault).toEqual([expect.stringMatching(new RegExp(`^agent-server: port ${port} on .* is in use`))])
  })
})

test('only the variable for the key is needed to listen on both', async () => {
  await using server = await startServer({ env: { OPENHANDS_SERVER_HOST: '' } })
  for (const address of BOTH) {
    expect((await fetch(`http://${address}:${new URL(server.url).port}/alive`)).status).toBe(200)
  }
})

test('a free port is the same one on both addresses', async () => {
  const { child, exited, output } = launch(['serve', '--generate-key', '--port', '0'], {
    env: { OPENHANDS_DATA_DIR: join(home, 'generated') },
    cwd: home,
  })
  await expect.poll(output).toContain('"msg":"ready"')
  const port = new URL(/"url":"([^"]+)"/.exec(output())![1]!).port
  for (const address of BOTH) expect((await fetch(`http://${address}:${port}/alive`)).status, address).toBe(200)
  child.kill('SIGTERM')
  expect(await exited).toBe(0)
})

test('the second address has the same limits, sockets and end as the first', async () => {
  await using server = await startServer({ env: { OPENHANDS_SERVER_HOST: 'localhost' } })
  const { port } = new URL(server.url)
  const raw = connect(Number(port), '::1')
  raw.write('no request at all\r\n\r\n')
  const [head, body] = (await text(raw)).split('\r\n\r\n')
  expect(head).toMatch(/^HTTP\/1\.1 400 /)
  expect(JSON.parse(body!)).toMatchObject({ error: 'invalid_request' })

  const url = `http://[::1]:${port}`
  const socket = await connectSocket(url, '/firehose')
  await socket.until(({ type }) => type === 'ready')
  const stream = await fetch(`${url}/firehose`, { headers: { authorization: `Bearer ${KEY}` } })
  const streamText = stream.text()
  // A client that has connected and says nothing does not hold up the stop either.
  const silent = connect(Number(port), '::1')
  await once(silent, 'connect')
  expect(await server.stop(), server.output()).toBe(0)
  expect(await streamText).toContain('event: server_closing')
  expect(await socket.closed).toBe(1001)
  expect(socket.frames.at(-1)).toEqual({ type: 'server_closing' })
})

test.each([
  ['127.0.0.1', '::1', '[::1]'],
  ['::1', '127.0.0.1', '127.0.0.1'],
])('%s is that address alone, and the start says that %s is not in use', async (host, free, shown) => {
  const port = await freePort()
  const { child, exited, output } = launch(['serve', '--host', host, '--port', String(port)], {
    env: { OPENHANDS_MASTER_KEY: KEY, OPENHANDS_DATA_DIR: join(home, 'one') },
    cwd: home,
  })
  await expect.poll(output).toContain('"ready"')
  expect(output()).toContain(`${shown}:${port} is not in use by this server`)
  expect(await takeover(port, free)).toBeUndefined()
  expect(await takeover(port, host)).toBe('EADDRINUSE')
  child.kill('SIGTERM')
  expect(await exited).toBe(0)
})

/** A network of its own, without IPv6. */
const WITHOUT_IPV6 = [
  'unshare',
  '--map-root-user',
  '--net',
  'sh',
  '-c',
  'ip link set lo up && echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6 && exec "$@"',
  'sh',
]

test.runIf(spawnSync(WITHOUT_IPV6[0]!, [...WITHOUT_IPV6.slice(1), 'true']).status === 0)(
  'a machine without IPv6 is served on IPv4 alone, and the log says so',
  async () => {
    const { child, exited, output } = launch(['serve', '--host', 'localhost', '--port', '8000'], {
      env: { OPENHANDS_MASTER_KEY: KEY, OPENHANDS_DATA_DIR: join(home, 'four') },
      cwd: home,
      wrapper: WITHOUT_IPV6,
    })
    await expect.poll(output).toContain('"ready"')
    expect(output()).toContain('This machine has no ::1')
    expect(output()).toContain('Server listening at http://127.0.0.1:8000')
    child.kill('SIGTERM')
    expect(await exited).toBe(0)
  },
)
