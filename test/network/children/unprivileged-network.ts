/** Run as a user without rights: what a sandboxed shell reaches in each network mode, as JSON. */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { createConnectionPermits } from '../../../src/network/connection-permits.ts'
import { parsePrivateRule } from '../../../src/network/private-hosts.ts'
import { NetworkProxy } from '../../../src/network/proxy.ts'
import { createOutboundConnector } from '../../../src/network/outbound-connector.ts'
import { HostEnvironment } from '../../../src/lib/start-process.ts'
import { BashShells } from '../../../src/shell/shells.ts'
import { requireSandbox } from '../../support/require-sandbox.ts'

const root = process.argv[2]!
const [dataDir, workdirBase, home] = [join(root, 'data'), join(root, 'work'), join(root, 'home')]
for (const directory of [dataDir, home]) mkdirSync(directory)
const canary = createServer((socket) => socket.on('error', () => {}).end('HTTP/1.1 200 OK\r\n\r\nreached'))
await once(canary.listen(0, '127.0.0.1'), 'listening')
const { port } = canary.address() as AddressInfo // it listens on a port
const rule = parsePrivateRule(`listed.test=127.0.0.1:${port}`)
if ('wrong' in rule) throw new Error(rule.wrong)

const proxy = new NetworkProxy({
  judge: async (host) =>
    host.kind === 'name' ? { allowed: true, isApproved: false } : { allowed: false, reason: 'not listed', advice: '' },
  isStillAllowed: () => true,
  reach: createOutboundConnector({ privateRules: [rule] }),
  permits: createConnectionPermits()(),
  onAccess: () => {},
  redact: (text) => text,
})
const launcher = await requireSandbox({ dataDir, workdirBase, home })

async function seenIn(mode: 'open' | 'none' | 'allowlist') {
  const shells = new BashShells({
    conversationId: randomUUID(),
    workdir: join(workdirBase, mode),
    stateDir: join(dataDir, mode),
    outputDir: join(dataDir, `${mode}-output`),
    privateDir: join(dataDir, `${mode}-private`),
    env: HostEnvironment.from({ PATH: process.env['PATH'], HOME: home }),
    launcher,
    network: () => ({ mode, adopt: (listener) => proxy.adopt(listener) }),
  })
  const fetched = async (url: string) => {
    const command = `curl -sS -m 20 ${url} 2>&1`
    const options = { timeout: 60, signal: new AbortController().signal }
    return (await shells.get('agent').run(command, options)).stdout
  }
  const seen = [await fetched(`http://127.0.0.1:${port}`), await fetched(`http://listed.test:${port}`)]
  await shells.close()
  return seen.map((text) => text.includes('reached'))
}

const seen = { open: await seenIn('open'), none: await seenIn('none'), allowlist: await seenIn('allowlist') }
process.stdout.write(JSON.stringify({ isolatesNetwork: launcher.isolatesNetwork, ...seen }))
process.exit()
