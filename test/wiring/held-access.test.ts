/** What an instance may not begin when others may have taken over its conversations: with a lease that is lost. */
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ToolCalls } from '../../src/agent/tool-calls.ts'
import { runHooks } from '../../src/hooks/run-hooks.ts'
import { Queue } from '../../src/lib/queue.ts'
import { createPooledFetch } from '../../src/llm/connection/pooled-fetch.ts'
import { createOutboundConnector } from '../../src/network/outbound-connector.ts'
import { createGuardedFetch } from '../../src/security/guarded-fetch.ts'
import { hostLauncher } from '../../src/sandbox/launch.ts'
import type { ShellLauncher } from '../../src/sandbox/launch.ts'
import { createRedactor } from '../../src/security/redaction/redactor.ts'
import { createSafeFetch } from '../../src/security/safe-fetch.ts'
import type { Lease } from '../../src/storage/lease/lease.ts'
import { RenewedLease } from '../../src/storage/lease/lease.ts'
import { createCallbackDispatcher } from '../../src/webhooks/dispatcher.ts'
import { createHeldAccess } from '../../src/wiring/held-access.ts'
import { tool } from '../conversations/fixtures.ts'
import { startReceiver } from '../support/receiver.ts'
import { openShells } from '../shell/shell-fixture.ts'

const SIGNAL = new AbortController().signal
const LOCAL = ['127.0.0.1/32']

const createLease = () =>
  new RenewedLease({ validMs: 3_600_000, beganAt: performance.now(), now: () => performance.now() })

/** Begins something; `effects` counts what came of it. */
type Attempt = (lease: Lease, effect: () => void) => Promise<unknown>

const unused = () => {
  throw new Error('not used here')
}

const ATTEMPTS: Readonly<Record<string, Attempt>> = {
  async 'a tool call'(lease, effect) {
    const calls = new ToolCalls({
      tools: [tool('Act', () => (effect(), { output: 'done' }))],
      context: () => ({ conversationId: 'c', workdir: '/work', openRequest: async () => undefined }),
      redactor: createRedactor(),
      emit: async () => {},
      adviceFor: () => undefined,
      onOutput: () => {},
      onCrash: () => {},
      lease,
    })
    await calls.run({ toolUseId: 'call', name: 'Act', input: {}, runId: 'run' })
  },
  async 'a hook'(lease, effect) {
    const deps = {
      shells: unused,
      workdir: () => '/work',
      outputDirectory: '/nowhere',
      fetch: { exchange: unused },
      userAgent: 'test',
      credentialsOf: () => undefined,
      turns: new Queue({ limit: 8 }),
      lease,
    }
    const call = async () => (effect(), {})
    const hook = { type: 'callback', point: 'PreToolUse', name: 'own', call } as const
    await runHooks(deps, [hook], { hook_event_name: 'PreToolUse' }, SIGNAL)
  },
  async 'an attempt of a webhook'(lease, effect) {
    await using receiver = await startReceiver(() => (effect(), 204))
    await using fetch = disposable(createSafeFetch({ allow: LOCAL }))
    await using dispatcher = disposable(createCallbackDispatcher({ fetch, userAgent: 'test', lease }))
    const message = {
      url: receiver.url,
      credentials: { headers: {}, secret: 'whsec_c2VjcmV0LW9mLXRoZS10ZXN0' },
      id: 'message',
      body: '{}',
    }
    await dispatcher.send(message, SIGNAL)
  },
  async 'a request to a model'(lease, effect) {
    await using receiver = await startReceiver(() => (effect(), 204))
    const init = { method: 'POST', body: Buffer.from('{}'), headers: {}, signal: SIGNAL }
    await createHeldAccess(lease).toModels(createPooledFetch())(receiver.url, init)
  },
  async 'a request to an MCP server'(lease, effect) {
    await using receiver = await startReceiver(() => (effect(), 204))
    await using mcp = disposable(createGuardedFetch({ allow: LOCAL }))
    await createHeldAccess(lease).toMcp(mcp.fetch)(receiver.url, { method: 'POST', body: '{}' })
  },
  async 'a connection of a sandbox'(lease, effect) {
    const server = createServer((socket) => void socket.end()).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const connector = createOutboundConnector({ privateRules: [] })
    const connect = createHeldAccess(lease).toHosts({
      connect: (...where) => (effect(), connector.connect(...where)),
    })
    try {
      await connect
        .connect({ kind: 'address', address: '127.0.0.1' } as never, port, SIGNAL)
        .catch((error: unknown) => {
          if (!String(error).includes('AddressDenied')) throw error
        })
    } finally {
      server.close()
    }
  },
  async 'a command'(lease, effect) {
    const { shells } = await openShells({ limits: { lease } })
    const { stdout } = await shells.get('main').run('echo ran', { signal: SIGNAL, timeout: Infinity })
    if (stdout.includes('ran')) effect()
  },
  async 'a program'(lease, effect) {
    const { shells } = await openShells({ limits: { lease } })
    const program = await shells.startProgram({ name: 'own', argv: ['true'], variables: {} })
    effect()
    await program.kill()
  },
}

function disposable<T extends { close: () => Promise<void> }>(one: T): T & AsyncDisposable {
  return Object.assign(one, { [Symbol.asyncDispose]: () => one.close() })
}

test.each(Object.entries(ATTEMPTS))(
  '%s begins while the lease is held, and never after it is lost',
  async (_, attempt) => {
    let effects = 0
    const lease = createLease()
    await attempt(lease, () => effects++)
    expect(effects).toBe(1)
    lease.lose(new Error('taken over'))
    await attempt(lease, () => effects++).catch((error: unknown) => expect(String(error)).toContain('taken over'))
    expect(effects).toBe(1)
  },
)

test('a command and a program do not begin if the lease is lost while their shell starts', async () => {
  const lost = async (lease: RenewedLease) => {
    const launch: ShellLauncher['launch'] = async (...plan) => {
      lease.lose(new Error('taken over'))
      return await hostLauncher.launch(...plan)
    }
    return await openShells({ limits: { lease }, launcher: { ...hostLauncher, launch } })
  }
  const { shells, workdir } = await lost(createLease())
  const result = await shells.get('main').run('echo ran > ran', { signal: SIGNAL, timeout: Infinity })
  expect(result).toMatchObject({ interrupted: true, note: 'The command was not started.' })
  const other = await lost(createLease())
  const argv = ['sh', '-c', `echo ran > ${other.workdir}/ran`]
  await expect(other.shells.startProgram({ name: 'own', argv, variables: {} })).rejects.toThrow('taken over')
  expect([workdir, other.workdir].filter((each) => existsSync(join(each, 'ran')))).toEqual([])
})
