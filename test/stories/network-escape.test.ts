/** An agent that wants to get around its network policy: whatever it tries, nothing on the host hears of it. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Canaries } from '../support/canaries.ts'
import { setCanaries } from '../support/canaries.ts'
import type { NetworkScene } from '../support/network.ts'
import { setNetworkScene } from '../support/network.ts'

let scene: NetworkScene
let canaries: Canaries

beforeAll(async () => {
  canaries = await setCanaries()
  scene = await setNetworkScene({})
})
afterAll(async () => {
  await scene?.[Symbol.asyncDispose]()
  canaries?.[Symbol.dispose]()
})

/** What would get out if the policy were but a habit of programs. The list of the second is as wide as one can be. */
const POLICIES = [{ mode: 'none' }, { mode: 'allowlist', allow: ['*:*'] }]
const UNPROXIED = 'env -i PATH="$PATH" LD_PRELOAD= '

/** Connects as `argv` says, with nothing but the kernel in between. */
const connect = (family: string, type: string, address: string) =>
  `python3 -c '
import socket
s = socket.socket(socket.${family}, socket.${type})
s.settimeout(5)
s.connect(${address})
s.send(b"x")
print("reached", s.recv(100) if socket.${type} == socket.SOCK_STREAM else "")'`

describe.each(POLICIES)('in the mode $mode', (network) => {
  let id: string
  beforeAll(async () => (id = await scene.create({ network })))

  const expectNoEscape = async (attempts: readonly string[]) => {
    for (const attempt of attempts) expect(await scene.run(id, attempt), attempt).not.toContain('reached')
    expect(canaries.reached).toEqual([])
  }

  test('the canaries are there: in the open network they are reached', async () => {
    const open = await scene.create({ network: { mode: 'open' } })
    const { port, abstractSocket } = canaries
    expect(await scene.run(open, `curl -sS --http0.9 -m 10 http://127.0.0.1:${port}`)).toContain('reached')
    expect(await scene.run(open, connect('AF_UNIX', 'SOCK_STREAM', `b"\\0${abstractSocket}"`))).toContain('reached')
    await expect.poll(() => canaries.reached.length).toBe(2)
    ;(canaries.reached as string[]).length = 0 // the canaries' own list
  })

  test('raw addresses of the host are not reached, loopback or not, in IPv4 or IPv6', async () => {
    const { port, addresses } = canaries
    expect(addresses).toContain('127.0.0.1')
    await expectNoEscape(
      addresses.map((address) =>
        connect(address.includes(':') ? 'AF_INET6' : 'AF_INET', 'SOCK_STREAM', `("${address}", ${port})`),
      ),
    )
    await expectNoEscape([`exec 3<>/dev/tcp/127.0.0.1/${port} && cat <&3`])
  })

  test('neither without the proxy variables, nor without what could have been preloaded', async () => {
    const { port } = canaries
    await expectNoEscape([
      `${UNPROXIED} curl -sS --http0.9 -m 10 http://127.0.0.1:${port}`,
      `${UNPROXIED} curl -sS --http0.9 -m 10 'http://[::1]:${port}'`,
      `(unset -v "\${!http@}" "\${!HTTP@}" "\${!all@}" "\${!ALL@}"; curl -sS --http0.9 -m 10 http://localhost:${port})`,
      `LD_PRELOAD=/nowhere.so ${UNPROXIED} curl -sS --http0.9 -m 10 http://127.0.0.1:${port}`,
    ])
  })

  test('names are not resolved, and nothing goes out over UDP', async () => {
    const { port } = canaries
    await expectNoEscape([
      connect('AF_INET', 'SOCK_DGRAM', `("127.0.0.1", ${port})`).replace('"reached"', '"sent"'),
      `python3 -c 'import socket; print("reached", socket.getaddrinfo("example.com", 80))'`,
      `echo "nameserver 127.0.0.1" >/etc/resolv.conf; ${UNPROXIED} getent ahosts example.com && echo reached`,
      `python3 -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(3)
for server in ("10.255.255.53", "192.0.2.53", "127.0.0.53"):
    try:
        s.sendto(bytes.fromhex("abcd01000001000000000000076578616d706c6503636f6d0000010001"), (server, 53))
        print("reached", s.recv(512))
    except OSError as error: print(error)'`,
    ])
  })

  test('abstract Unix sockets of the host are not reached', async () => {
    await expectNoEscape([connect('AF_UNIX', 'SOCK_STREAM', `b"\\0${canaries.abstractSocket}"`)])
  })

  test('no address of a metadata service is reached', async () => {
    for (const address of ['169.254.169.254', '[fd00:ec2::254]', '100.100.100.200', '168.63.129.16']) {
      const seen = await scene.run(
        id,
        `curl -sS -m 10 -o body -w '%{http_code}' http://${address}/latest/meta-data/; cat body`,
      )
      expect(seen, address).toMatch(network.mode === 'none' ? /curl: \(\d+\)/ : /^403.*credentials/s)
      expect(await scene.run(id, `${UNPROXIED} curl -sS -m 10 http://${address}/`), address).toMatch(/curl: \(\d+\)/)
    }
  })

  test('new namespaces and interfaces lead nowhere', async () => {
    const { port, addresses } = canaries
    const outer = addresses.find((address) => address !== '127.0.0.1' && !address.includes(':')) ?? '192.0.2.2'
    await expectNoEscape([
      `unshare -Urn sh -c 'ip link set lo up; curl -sS --http0.9 -m 5 http://127.0.0.1:${port}'`,
      `ip link add dummy0 type dummy; ip addr add 10.0.0.2/24 dev dummy0; ip link set dummy0 up; ip route add default dev dummy0; ${UNPROXIED} curl -sS --http0.9 -m 5 http://${outer}:${port}`,
      `for net in /proc/[0-9]*/ns/net; do nsenter --net=$net curl -sS --http0.9 -m 5 http://127.0.0.1:${port}; done`,
    ])
  })

  test('a shell holds no other descriptors than one in the open network, and no channel to the server', async () => {
    const held = `ls -l /proc/$$/fd | awk 'NR > 1 { print $9, $11 }' | sed -E 's/[0-9a-f-]{36}//; s/\\[[0-9]+\\]//'`
    const open = await scene.create({ network: { mode: 'open' } })
    expect(await scene.run(id, `(${held})`)).toBe(await scene.run(open, `(${held})`))
    expect(await scene.run(id, 'env | grep -c NODE_CHANNEL')).toMatch(/^0\n/)
  })
})

describe('through the proxy', () => {
  let id: string
  beforeAll(async () => (id = await scene.create({ network: { mode: 'allowlist', allow: ['*:*', 'localhost:*'] } })))

  test('no way of writing it leads to the host’s own addresses, nor to the server itself', async () => {
    const port = canaries.port
    const names = ['127.0.0.1', 'localhost', '0', '127.1', '0x7f.1', '2130706433', '017700000001', '[::1]', '[::]']
    const mapped = ['[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[64:ff9b::7f00:1]', '[2002:7f00:1::]', '[::127.0.0.1]']
    const own = canaries.addresses.map((address) => (address.includes(':') ? `[${address}]` : address))
    const api = new URL(scene.server.url).port
    for (const host of [...names, ...mapped, ...own]) {
      // curl would change some of the notations before it sends them.
      const raw = (at: string) =>
        `exec 3<>/dev/tcp/127.0.0.1/3128; printf 'CONNECT ${host}:${at} HTTP/1.1\\r\\n\\r\\n' >&3; head -1 <&3`
      expect(await scene.run(id, raw(String(port))), host).toMatch(/^HTTP\/1\.1 403 /)
      expect(await scene.run(id, raw(api)), host).toMatch(/^HTTP\/1\.1 403 /)
    }
    expect(canaries.reached).toEqual([])
  })

  test('a Host header or a second request on the connection leads nowhere else', async () => {
    const { port } = canaries
    const both = `printf 'GET http://203.0.113.1:1/ HTTP/1.1\\r\\nHost: 127.0.0.1:${port}\\r\\n\\r\\nGET http://127.0.0.1:${port}/ HTTP/1.1\\r\\n\\r\\n'`
    await scene.run(
      await scene.create({ network: { mode: 'allowlist', allow: [] } }),
      `exec 3<>/dev/tcp/127.0.0.1/3128; ${both} >&3; cat <&3`,
    )
    expect(canaries.reached).toEqual([])
  })
})
