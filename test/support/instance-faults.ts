/** Instances on one database, with TCP proxies before it and between them, and what can happen to each. */
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Script } from '../../src/llm/scripted/script.ts'
import type { Stage } from './agent.ts'
import { setStage } from './agent.ts'
import type { Direction } from './cut-proxy.ts'
import { startCutProxy } from './cut-proxy.ts'
import { instanceOn } from './instances.ts'
import type { TestDatabase, TestPostgres } from './postgres.ts'
import type { Random } from './random.ts'
import type { TestServer } from './server.ts'
import { freePort, startServer } from './server.ts'
import { until } from './until.ts'

type Proxy = Awaited<ReturnType<typeof startCutProxy>>

export type Instance = {
  readonly server: TestServer
  /** The proxy before its database. */
  readonly database: Proxy
  /** The proxy before its address for the others. */
  readonly peers: Proxy
}

export type Instances = { readonly stage: Stage; readonly instances: readonly Instance[] }

export async function startInstances(
  count: number,
  { script, database, place }: { readonly script: Script; readonly database: TestDatabase; readonly place: string },
  opened: AsyncDisposableStack,
): Promise<Instances> {
  let stage: Stage | undefined
  const instances: Instance[] = []
  while (instances.length < count) {
    const before = await startCutProxy(new URL(`http://127.0.0.1:${database.port}`))
    opened.defer(() => before.close())
    const port = await freePort()
    const peers = await startCutProxy(new URL(`http://127.0.0.1:${port}`))
    opened.defer(() => peers.close())
    const url = new URL(database.url)
    url.port = new URL(before.url).port
    const env = {
      ...instanceOn({ url: url.href }),
      OPENHANDS_CLUSTER_LISTEN: `127.0.0.1:${port}`,
      OPENHANDS_ADVERTISE_URL: peers.url,
      OPENHANDS_SHARED_DIR: join(place, 'shared'),
      OPENHANDS_DRAIN_SECONDS: '5',
    }
    const server: TestServer = stage
      ? opened.use(await startServer({ env }))
      : (stage = opened.use(await setStage(script, { env }))).server
    instances.push({ server, database: before, peers })
  }
  return { stage: stage!, instances }
}

const IS_DEAD = 'select from incarnations where pid = $1 and ended_at is not null'

/** Starts an instance again that was declared dead, because a stop or an outage took longer than the TTL. */
export async function revive(database: TestDatabase, { server }: Pick<Instance, 'server'>): Promise<void> {
  if ((await database.query(IS_DEAD, [server.pid])).length > 0) await server.restart('SIGKILL')
}

export type Surroundings = {
  readonly postgres: TestPostgres
  readonly database: TestDatabase
  readonly random: Random
  /** Resolves when clients have got further. */
  readonly progress: () => Promise<void>
}

type Fault = (instance: Instance) => Promise<void>

/** Each fault ends before the next one begins: what comes after depends on no time. */
export const faultsOf = (around: Surroundings): [string, Fault][] =>
  Object.entries({ ...ofProcesses(around), ...ofConnections(around), ...ofDatabases(around) })

function ofProcesses({ database, random, progress }: Surroundings): Record<string, Fault> {
  return {
    'kill -9': async ({ server }) => {
      await server.stop('SIGKILL')
      if (random.below(2) === 0) await progress()
      await server.restart()
    },
    'SIGTERM, as in a rolling restart': ({ server }) => server.restart('SIGTERM'),
    'a short stop': async ({ server }) => {
      process.kill(server.pid, 'SIGSTOP')
      await progress()
      process.kill(server.pid, 'SIGCONT')
    },
    'a stop past the TTL': async ({ server }) => {
      const { pid } = server
      process.kill(pid, 'SIGSTOP')
      await until('the end of its lease', async () => (await database.query(IS_DEAD, [pid])).length > 0)
      await progress()
      process.kill(pid, 'SIGCONT')
      // It learns that it was declared dead.
      expect(await server.exited()).toBe(1)
      await server.restart()
    },
  }
}

function ofConnections({ database, random, progress }: Surroundings): Record<string, Fault> {
  const during = (begin: (proxy: Proxy) => void, link: 'database' | 'peers'): Fault => {
    return async (instance) => {
      begin(instance[link])
      await progress()
      instance[link].up()
    }
  }
  const pastTtl =
    (direction: Direction): Fault =>
    async ({ server, database: proxy }) => {
      proxy.hold(direction)
      // Answers that are held do not keep its counter from being raised.
      if (direction === 'requests')
        await until('the end of its lease', async () => (await database.query(IS_DEAD, [server.pid])).length > 0)
      await progress()
      proxy.up()
    }
  const slow = (proxy: Proxy) => proxy.slow(random.pick([20, 200, 1000]))
  return {
    'cut connections to the database': async ({ database: proxy }) => {
      for (let cuts = 1 + random.below(5); cuts > 0; cuts--) {
        proxy.cut()
        await progress()
      }
    },
    'no way to the database': during((proxy) => proxy.down(), 'database'),
    'a one-way cut: the database gets nothing': during((proxy) => proxy.hold('requests'), 'database'),
    'a one-way cut past the TTL: the database gets nothing': pastTtl('requests'),
    'a one-way cut: the database answers nothing': pastTtl('answers'),
    'a slow way to the database': during(slow, 'database'),
    'no way to an instance': during((proxy) => proxy.down(), 'peers'),
    'cut connections between instances': during((proxy) => proxy.cut(), 'peers'),
    'a one-way cut: an instance gets nothing': during((proxy) => proxy.hold('requests'), 'peers'),
    'a one-way cut: an instance answers nothing': during((proxy) => proxy.hold('answers'), 'peers'),
    'a slow way to an instance': during(slow, 'peers'),
  }
}

function ofDatabases({ postgres, random, progress }: Surroundings): Record<string, Fault> {
  const restart = (signal: 'SIGINT' | 'SIGQUIT') => async () => {
    for (let times = 1 + random.below(3); times > 0; times--) {
      await postgres.stop(signal)
      await postgres.start()
      await progress()
    }
  }
  return { 'restarts of the database': restart('SIGINT'), 'crashes of the database': restart('SIGQUIT') }
}
