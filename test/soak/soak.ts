/**
 * The soak: all that clients do, at random and as fast as the server answers, for hours. At each measurement everything
 * is deleted, so that all that is still in memory then is what the server never lets go.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createRandom } from '../support/random.ts'
import { doSomething } from './actions.ts'
import { startFailingReceiver } from './failing-receiver.ts'
import { followAll, followOne, stall } from './readers.ts'
import type { Measured } from './report.ts'
import { Report } from './report.ts'
import type { WatchedServer } from './watched-server.ts'
import { startWatchedServer } from './watched-server.ts'
import { World } from './world.ts'

export type SoakOptions = {
  readonly hours: number
  /** Selects what is done. */
  readonly seed: number
  /** Where the report is written. */
  readonly log: string
  /** Where heap snapshots are written, in the middle and at the end. */
  readonly snapshots?: string | undefined
}

const CLIENTS = 32
const READERS = 12
const STALLED_READERS = 3
const FIREHOSE_READERS = 2
/** Between two measurements; in a short soak, a twelfth of it. */
const MEASURE_EVERY_MS = 10 * 60_000
const MIN_MEASUREMENTS = 12
/** Short times and small buffers, so that idle closes and lagging readers are frequent. */
const SETTINGS = {
  OPENHANDS_IDLE_SECONDS: '2',
  OPENHANDS_STREAM_BUFFER_BYTES: '262144',
  OPENHANDS_CALLBACK_ALLOW: '127.0.0.1',
  OPENHANDS_LOG_LEVEL: 'ERROR',
}

/** Returns true if nothing failed and the live heap does not rise. */
export async function soak({ hours, seed, log, snapshots }: SoakOptions): Promise<boolean> {
  const report = new Report(log)
  const random = createRandom(seed)
  await using receiver = await startFailingReceiver(random)
  await using model = await startModel()
  await using watched = await startWatchedServer(SETTINGS)
  const { server } = watched
  const onFailure = (text: string) => report.say(`FAILED: ${text}`)
  const world = new World({ url: server.url, modelUrl: model.url, receiverUrl: receiver.url, random, onFailure })
  const everyMs = Math.min(MEASURE_EVERY_MS, (hours * 3_600_000) / MIN_MEASUREMENTS)
  const rounds = Math.round((hours * 3_600_000) / everyMs)
  report.say(
    `A soak of ${hours} hours with seed ${seed}, of the server with pid ${server.pid}. The report is in ${log}.`,
  )
  const began = performance.now()
  for (let round = 1; round <= rounds; round++) {
    // What a rest takes is taken from the next round.
    const busy = await work(world, watched, Math.max(began + round * everyMs - performance.now(), everyMs / 2))
    const quiet = await watched.measure()
    const minutes = (performance.now() - began) / 60_000
    report.add({ minutes, busy, quiet, operations: world.operations, failures: world.failed })
    if (snapshots !== undefined && (round === Math.ceil(rounds / 2) || round === rounds))
      await watched.writeSnapshot(join(snapshots, `round-${round}.heapsnapshot`))
  }
  for (const [text, count] of world.failures) report.say(`${count} times: ${text}`)
  if (server.output().includes('"level"')) report.say(`The server has logged errors:\n${server.output()}`)
  const isFlat = report.judge()
  return isFlat && world.failed === 0
}

/** Everything at once, for so long. Returns what the server holds at the end of it, before everything is deleted. */
async function work(world: World, watched: WatchedServer, ms: number): Promise<Measured['busy']> {
  const stop = new AbortController()
  const { signal } = stop
  const times = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at))
  const readers = [
    ...times(FIREHOSE_READERS, (at) => followAll(world, signal, at % 2 === 0)),
    ...times(READERS, () => followOne(world, signal)),
    ...times(STALLED_READERS, () => stall(world, signal)),
  ]
  const clients = times(CLIENTS, async () => {
    while (!signal.aborted) await doSomething(world)
  })
  await new Promise((resolve) => setTimeout(resolve, ms))
  const busy = await watched.measure()
  stop.abort()
  await Promise.all([...readers, ...clients])
  await world.rest(async () => (await leftOf(watched)) === 0)
  return busy
}

/** What a server at rest has none of. */
async function leftOf({ metric }: WatchedServer): Promise<number> {
  const names = ['conversations{', 'conversations_open', 'runs_active', 'runs_queued', 'streams{']
  const counts = await Promise.all(names.map((name) => metric(`agent_server_${name}`)))
  return counts.reduce((sum, count) => sum + count, 0)
}

/** In a process of its own, so that it does not wait for the clients. */
async function startModel(): Promise<AsyncDisposable & { readonly url: string }> {
  const child = fork(join(import.meta.dirname, 'children/model.ts'))
  const [{ baseUrl }] = (await once(child, 'message')) as [{ baseUrl: string }]
  return {
    url: baseUrl,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await once(child, 'exit')
    },
  }
}
