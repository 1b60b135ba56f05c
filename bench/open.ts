/** What conversations cost that are created in a row and used by nobody: memory while they are there, and a stop of the server. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { KEY, URL, megabytesOf, startServerProcess } from './server-process.ts'
import { send } from './subjects.ts'
import type { Row } from './table.ts'

const CREATES = 20_000
const CREATED_AT_A_TIME = 16
/** This many are created before memory is measured the first time. */
const WARM_UP = 200

const GOAL_BYTES = 25 * 1024
const GOAL_STOP_MS = 10_000

export async function benchOpen(): Promise<Row[]> {
  const home = await mkdtemp(join(tmpdir(), 'bench-open-'))
  const server = await startServerProcess(home, { OPENHANDS_LOG_LEVEL: 'ERROR' })
  try {
    await createMany(WARM_UP)
    const before = megabytesOf(server.pid)
    await createMany(CREATES)
    const bytes = ((megabytesOf(server.pid) - before) * 1e6) / CREATES
    const open = await openCount()
    const began = performance.now()
    await server.kill('SIGTERM')
    const stopMs = performance.now() - began
    const what = `${CREATES.toLocaleString('en')} conversations created in a row`
    return [
      [
        `${what}: resident memory each, and how many stay open`,
        `${(bytes / 1024).toFixed(1)} KB, ${open.toLocaleString('en')}`,
        `${(bytes / GOAL_BYTES).toFixed(2)} of ${GOAL_BYTES / 1024} KB`,
      ],
      [
        `${what}: a stop of the server`,
        `${(stopMs / 1000).toFixed(2)} s`,
        `${(stopMs / GOAL_STOP_MS).toFixed(2)} of ${GOAL_STOP_MS / 1000} s`,
      ],
    ]
  } finally {
    await server.kill()
    await rm(home, { recursive: true, force: true, maxRetries: 3 })
  }
}

async function createMany(count: number): Promise<void> {
  let left = count
  const create = async () => {
    while (left-- > 0) await send(`${URL}/conversations`, { llm_config: { model: 'none' } })
  }
  await Promise.all(Array.from({ length: CREATED_AT_A_TIME }, create))
}

async function openCount(): Promise<number> {
  const response = await fetch(`${URL}/metrics`, { headers: { authorization: `Bearer ${KEY}` } })
  return Number(/^agent_server_conversations_open (\d+)/m.exec(await response.text())?.[1])
}
