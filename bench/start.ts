/** How long the executable takes to answer, alone and with many conversations on disk, compared with the minimum for a server in Node. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Row } from './table.ts'
import { median } from './table.ts'
import { fillWithConversations } from './many-conversations.ts'
import { startModel } from './model-process.ts'
import type { ServerProcess } from './server-process.ts'
import { megabytesOf, startBareServer, startServerProcess } from './server-process.ts'
import { startAgentServer } from './subjects.ts'

const ROUNDS = 11
const CONVERSATIONS = 10_000
const STEPS = 250

export async function benchStart(): Promise<Row[]> {
  const home = await mkdtemp(join(tmpdir(), 'bench-start-'))
  try {
    const bare: Started[] = []
    const starts: Started[] = []
    // In turn, so that what else the machine does hits both alike; the first round makes files and warms caches.
    for (let round = 0; round <= ROUNDS; round++) {
      bare.push(await timed(startBareServer()))
      starts.push(await timed(startServerProcess(home)))
    }
    const [own, its] = [starts, bare].map((all) => ({
      ms: median(all.slice(1).map((start) => start.ms)),
      readyMs: median(all.slice(1).map((start) => start.readyMs)),
      megabytes: median(all.slice(1).map((start) => start.megabytes)),
    })) as [Started, Started]
    const worked = await megabytesAfterSteps()
    await fillWithConversations(home, CONVERSATIONS)
    const many = median(
      [
        await timed(startServerProcess(home)),
        await timed(startServerProcess(home)),
        await timed(startServerProcess(home)),
      ].map((start) => start.readyMs),
    )
    return [
      ['start to the first answer, of `/alive`', `${own.ms.toFixed(0)} ms`, ofBare(own.ms, its.ms, 'ms')],
      ['start until it is ready', `${own.readyMs.toFixed(0)} ms`, ofBare(own.readyMs, its.ms, 'ms')],
      ['resident memory then', `${own.megabytes.toFixed(0)} MB`, ofBare(own.megabytes, its.megabytes, 'MB')],
      [
        `resident memory after ${STEPS} steps`,
        `${worked.toFixed(0)} MB`,
        ofBare(worked, its.megabytes, 'MB at its start'),
      ],
      [
        `start with ${CONVERSATIONS.toLocaleString('en')} conversations on disk`,
        `${many.toFixed(0)} ms`,
        `${(many / 1000).toFixed(2)} of 1 s`,
      ],
    ]
  } finally {
    await rm(home, { recursive: true, force: true })
  }
}

type Started = Pick<ServerProcess, 'ms' | 'readyMs' | 'megabytes'>

async function timed(starting: Promise<ServerProcess>): Promise<ServerProcess> {
  const server = await starting
  await server.kill()
  return server
}

async function megabytesAfterSteps(): Promise<number> {
  await using model = await startModel()
  await using server = await startAgentServer(model.url)
  await server.run(await server.create(), { steps: STEPS })
  return megabytesOf(server.pid)
}

const ofBare = (own: number, its: number, unit: string) =>
  `${(own / its).toFixed(2)} of a bare Node HTTP server's ${its.toFixed(0)} ${unit}`
