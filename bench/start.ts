/** How long the executable takes to answer, alone and with many conversations on disk, compared with the minimum for a server in Node. */
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Row } from './table.ts'
import { median } from './table.ts'
import { fillWithConversations } from './many-conversations.ts'
import { startModel } from './model-process.ts'
import type { ServerProcess } from './server-process.ts'
import {
  megabytesOf,
  startBareServer,
  startBareUntilCreated,
  startServerProcess,
  startUntilCreated,
} from './server-process.ts'
import { startAgentServer } from './subjects.ts'

const ROUNDS = 11
const CONVERSATIONS = 10_000
const STEPS = 250

export async function benchStart(): Promise<Row[]> {
  const home = await mkdtemp(join(tmpdir(), 'bench-start-'))
  try {
    const bare: Started[] = []
    const starts: Started[] = []
    // They take turns, so that what else the machine does affects both; the first round creates files and warms caches.
    for (let round = 0; round <= ROUNDS; round++) {
      bare.push(await timed(startBareServer()))
      starts.push(await timed(startServerProcess(home)))
    }
    const [own, its] = [starts, bare].map((all) => ({
      ms: median(all.slice(1).map((start) => start.ms)),
      readyMs: median(all.slice(1).map((start) => start.readyMs)),
      megabytes: median(all.slice(1).map((start) => start.megabytes)),
    })) as [Started, Started]
    const [created, bareCreated] = await untilCreated(join(home, 'created'))
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
      [
        'start until a conversation was created',
        `${created.toFixed(0)} ms`,
        `${(created / bareCreated).toFixed(2)} of the ${bareCreated.toFixed(0)} ms of a bare server that makes the same files`,
      ],
      [
        'resident memory when it is ready',
        `${own.megabytes.toFixed(0)} MB`,
        ofBare(own.megabytes, its.megabytes, 'MB'),
      ],
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

/** Medians of the executable and of a bare server that writes and syncs the same files; each directory is in use before. */
async function untilCreated(home: string): Promise<[own: number, bare: number]> {
  const sessions = join(home, 'data/sessions')
  const own: number[] = []
  const bare: number[] = []
  for (let round = 0; round <= ROUNDS; round++) {
    const server = await startUntilCreated(home)
    // `meta.json` comes shortly after the answer, which does not wait for it.
    await server.kill('SIGTERM')
    own.push(server.createdMs)
    const [id = ''] = await readdir(sessions)
    const itsServer = await startBareUntilCreated(join(home, 'bare'), join(sessions, id))
    await itsServer.kill()
    bare.push(itsServer.createdMs)
  }
  return [median(own.slice(1)), median(bare.slice(1))]
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
