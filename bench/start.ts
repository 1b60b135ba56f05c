/** How long the executable takes to answer, alone and with many conversations on disk, beside the least a Node process takes. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Row } from './table.ts'
import { median } from './table.ts'
import { fillWithConversations } from './many-conversations.ts'
import { startServerProcess } from './server-process.ts'

const ROUNDS = 11
const CONVERSATIONS = 10_000

export async function benchStart(): Promise<Row[]> {
  const home = await mkdtemp(join(tmpdir(), 'bench-start-'))
  try {
    const nodes: number[] = []
    const starts: { ms: number; megabytes: number }[] = []
    // In turn, so that what else the machine does hits both alike; the first round makes files and warms caches.
    for (let round = 0; round <= ROUNDS; round++) {
      nodes.push(await timeNode())
      starts.push(await timeServer(home))
    }
    const node = median(nodes.slice(1))
    const alive = median(starts.slice(1).map((start) => start.ms))
    const resident = median(starts.slice(1).map((start) => start.megabytes))
    const allowed = 2 * node + 150
    await fillWithConversations(home, CONVERSATIONS)
    const many = median(
      [await timeServer(home), await timeServer(home), await timeServer(home)].map((start) => start.readyMs),
    )
    return [
      [
        'start to the first answer',
        `${alive.toFixed(0)} ms`,
        `${(alive / allowed).toFixed(2)} of twice \`node -e 0\` (${node.toFixed(0)} ms) and 150 ms`,
      ],
      ['resident memory then', `${resident.toFixed(0)} MB`, `${(resident / 130).toFixed(2)} of 130 MB`],
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

async function timeNode(): Promise<number> {
  const began = performance.now()
  await once(spawn(process.execPath, ['-e', '0'], { stdio: 'ignore' }), 'exit')
  return performance.now() - began
}

async function timeServer(home: string) {
  const server = await startServerProcess(home)
  await server.kill()
  return server
}
