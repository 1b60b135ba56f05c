/** What commands reach in each network mode, with the programs that they use: curl, git, npm and pip. */
import { readdirSync, readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { NetworkScene } from '../support/network.ts'
import { setNetworkScene } from '../support/network.ts'
import type { PackageServer } from '../support/package-server.ts'
import { startPackageServer } from '../support/package-server.ts'

const PARALLEL = 200

/** Requests for `/together`: none is answered before all of them are there. */
const together: ServerResponse[] = []
let outside: PackageServer
let scene: NetworkScene

beforeAll(async () => {
  outside = await startPackageServer(({ url = '' }, response) => {
    if (!url.startsWith('/together')) return false
    together.push(response)
    if (together.length === PARALLEL) for (const each of together.splice(0)) each.end('x'.repeat(100_000))
    return true
  })
  const { port } = outside
  scene = await setNetworkScene({ 'listed.test': port, 'sub.listed.test': port, 'unlisted.test': port })
})
afterAll(async () => {
  await scene?.[Symbol.asyncDispose]()
  await outside?.[Symbol.asyncDispose]()
})

const listed = (...more: string[]) => ({
  mode: 'allowlist',
  allow: [`listed.test:${outside.port}`, ...more.map((name) => `${name}:${outside.port}`)],
})

/** What each program downloads from that host; the last word of each tells that it has it. */
const clients = (host: string): [name: string, command: string, outcome: RegExp][] => {
  const url = `http://${host}:${outside.port}`
  return [
    ['curl', `curl -sSf -m 60 ${url}/hello`, /^hello from outside\n0$/],
    ['curl through a tunnel', `curl -sSf -m 60 --proxytunnel ${url}/hello`, /^hello from outside\n0$/],
    ['curl with SOCKS', `curl -sSf -m 60 -x socks5h://127.0.0.1:3128 ${url}/hello`, /^hello from outside\n0$/],
    ['git', `rm -rf r; git clone -q ${url}/repository.git r && cat r/README`, /^a repository\n0$/],
    [
      'npm',
      `rm -rf n; mkdir n; cd n; npm install --registry=${url}/ --fetch-retries=0 --no-audit --no-fund tiny-package >&2; cd ..; ls n/node_modules`,
      /^tiny-package\n/,
    ],
    [
      'pip',
      `rm -rf p; python3 -m pip install -q --retries 0 --timeout 60 --no-deps --no-cache-dir --disable-pip-version-check --target p --trusted-host ${host} --index-url ${url}/simple tiny-wheel >&2; cat p/tiny_wheel.py`,
      /^word = "wheel"\n/,
    ],
  ]
}

/** To all but the first host, requests go the same few ways: npm and pip take a second each to say that there is none. */
const clientsOfEach = (hosts: readonly string[]) =>
  hosts.flatMap((host, at) => clients(host).filter(([name]) => at === 0 || (name !== 'npm' && name !== 'pip')))

describe('in the mode open', () => {
  test('commands are in the network of the host', async () => {
    const id = await scene.create({ network: { mode: 'open' } })
    expect(await scene.run(id, `curl -sSf http://127.0.0.1:${outside.port}/hello`)).toBe('hello from outside\n0')
    expect(await scene.run(id, 'env | grep -ic _proxy')).toMatch(/^0\n/)
  })
})

describe('in the mode none', () => {
  test('no program reaches anything, and each fails at once', async () => {
    const id = await scene.create({ network: { mode: 'none' } })
    const before = outside.seen.length
    for (const [name, command, outcome] of clientsOfEach(['listed.test', '127.0.0.1', 'localhost'])) {
      expect(await scene.run(id, command), name).not.toMatch(outcome)
    }
    expect(outside.seen.slice(before)).toEqual([])
  })

  test('programs of one shell reach each other over its own loopback', async () => {
    const id = await scene.create({ network: { mode: 'none' } })
    const served = `echo inside >file; python3 -u -m http.server 8000 --bind 127.0.0.1 >log 2>&1 &
      for i in $(seq 200); do curl -sf http://localhost:8000/file && break; sleep 0.1; done; kill %1`
    expect(await scene.run(id, served)).toContain('inside\n')
  })
})

describe('in the mode allowlist', () => {
  test('each program reaches a listed host without configuration', async () => {
    const id = await scene.create({ network: listed() })
    for (const [name, command, outcome] of clients('listed.test')) {
      expect(await scene.run(id, command), name).toMatch(outcome)
    }
  })

  test('no program reaches another one, and gets the reason', async () => {
    const id = await scene.create({ network: listed() })
    const before = outside.seen.length
    const hosts = ['unlisted.test', 'sub.listed.test', '127.0.0.1', '[::1]', '0x7f000001']
    for (const [name, command, outcome] of clientsOfEach(hosts)) {
      expect(await scene.run(id, command), `${name}: ${command}`).not.toMatch(outcome)
    }
    expect(outside.seen.slice(before)).toEqual([])
    const output = await scene.run(id, `curl -sS http://unlisted.test:${outside.port}/`)
    expect(output).toContain(`refused unlisted.test:${outside.port}: it is not on the allow list`)
    expect(output).toContain('network.allow')
  })

  test('programs of one shell reach each other over its own loopback', async () => {
    const id = await scene.create({ network: listed() })
    const served = `echo inside >file; python3 -u -m http.server 8000 --bind 127.0.0.1 >log 2>&1 &
      for i in $(seq 200); do curl -sf http://localhost:8000/file && break; sleep 0.1; done; kill %1`
    expect(await scene.run(id, served)).toContain('inside\n')
  })

  test('the agent has the same network as commands of clients', async () => {
    const id = await scene.create({ network: listed() })
    const [listedUrl, other] = ['listed', 'unlisted'].map((name) => `http://${name}.test:${outside.port}/hello`)
    const fetchBoth = `curl -sS ${listedUrl}; curl -sS ${other}`
    const result = (await scene.say(id, fetchBoth)).find((event) => event.type === 'ToolResult')
    expect(result.output.stdout).toContain('hello from outside\n')
    expect(result.output.stdout).toContain('refused unlisted.test')
  })

  test(`${PARALLEL} concurrent connections get their responses, and leave nothing behind`, async () => {
    const id = await scene.create({ network: listed() })
    const memory = () =>
      Number(/^VmRSS:\s*(\d+)/m.exec(readFileSync(`/proc/${scene.server.pid}/status`, 'utf8'))![1]) / 1024
    const descriptors = () => readdirSync(`/proc/${scene.server.pid}/fd`).length
    await scene.run(id, 'true')
    const [memoryBefore, descriptorsBefore] = [memory(), descriptors()]
    const url = `http://listed.test:${outside.port}/together?[1-${PARALLEL}]`
    for (let round = 0; round < 3; round++) {
      const out = await scene.run(
        id,
        `curl -sS -m 100 --parallel --parallel-immediate --parallel-max ${PARALLEL} '${url}' -o 'part#1' 2>/dev/null && cat part* | wc -c`,
      )
      expect(out).toBe(`${PARALLEL * 100_000}\n0`)
    }
    await expect.poll(descriptors).toBeLessThanOrEqual(descriptorsBefore + 5)
    expect(memory() - memoryBefore).toBeLessThan(100)
  })

  test('with the end of its shell, a connection ends; and a new shell has a new proxy', async () => {
    const id = await scene.create({ network: listed() })
    const fetched = `curl -sSf http://listed.test:${outside.port}/hello`
    expect(await scene.run(id, fetched)).toBe('hello from outside\n0')
    await scene.run(id, 'exit 3')
    expect(await scene.run(id, fetched)).toBe('hello from outside\n0')
    const inBackground = { command: `${fetched} >b; cat b; sleep 0.1`, background: true }
    const { body } = await scene.server.call('POST', `/conversations/${id}/commands`, inBackground)
    const output = `/conversations/${id}/commands/${body.command_id}/output?wait=20`
    await expect
      .poll(async () => JSON.stringify((await scene.server.call('GET', output)).body))
      .toContain('hello from outside')
  })

  test('holds where only listed files of the host are shown', async () => {
    await using own = await setNetworkScene({ 'listed.test': outside.port }, { OPENHANDS_SANDBOX_READABLE: '/usr' })
    const fetched = (host: string) => `curl -sS -m 60 http://${host}:${outside.port}/hello; cat /etc/resolv.conf 2>&1`
    const id = await own.create({ network: listed() })
    expect(await own.run(id, fetched('listed.test'))).toMatch(/^hello from outside\ncat: .*resolv.conf/)
    expect(await own.run(id, fetched('unlisted.test'))).toContain('refused unlisted.test')
    const without = await own.create({ network: { mode: 'none' } })
    expect(await own.run(without, fetched('listed.test'))).toMatch(/^cat: .*resolv.conf.*Could not resolve/s)
  })
})
