/** How long a run without the chat takes until its first request to the model, compared with the start of the server. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { EXECUTABLE, megabytesOf, startServerProcess } from './server-process.ts'
import type { Row } from './table.ts'
import { median } from './table.ts'

const ROUNDS = 11

type Started = { readonly ms: number; readonly megabytes: number }

export async function benchCli(): Promise<Row[]> {
  const home = await mkdtemp(join(tmpdir(), 'bench-cli-'))
  try {
    const servers: Started[] = []
    const runs: Started[] = []
    // They take turns, so that what else the machine does affects both; the first round creates files and warms caches.
    for (let round = 0; round <= ROUNDS; round++) {
      const server = await startServerProcess(home)
      await server.kill('SIGTERM')
      servers.push({ ms: server.readyMs, megabytes: server.megabytes })
      runs.push(await firstRequest(home))
    }
    const [its, own] = [servers, runs].map((all) => ({
      ms: median(all.slice(1).map(({ ms }) => ms)),
      megabytes: median(all.slice(1).map(({ megabytes }) => megabytes)),
    })) as [Started, Started] // one of each list
    const ratio = (unit: string, mine: number, other: number) =>
      `${(mine / other).toFixed(2)} of the server's ${other.toFixed(0)} ${unit} until it is ready`
    return [
      [
        '`agent-server -p`: start to the first request to the model',
        `${own.ms.toFixed(0)} ms`,
        ratio('ms', own.ms, its.ms),
      ],
      ['resident memory then', `${own.megabytes.toFixed(0)} MB`, ratio('MB', own.megabytes, its.megabytes)],
    ]
  } finally {
    await rm(home, { recursive: true, force: true })
  }
}

/** The model never answers: what is measured is over with its first request. */
async function firstRequest(home: string): Promise<Started> {
  const model = createServer().listen(0, '127.0.0.1')
  await once(model, 'listening')
  const { port } = model.address() as AddressInfo // it listens on TCP
  const env = {
    PATH: process.env['PATH'],
    HOME: home,
    OPENHANDS_DATA_DIR: join(home, 'data'),
    LLM_MODEL: 'scripted',
    LLM_API_KEY: 'bench',
    LLM_BASE_URL: `http://127.0.0.1:${port}/v1`,
  }
  // The data directory may not be inside the working directory.
  const cwd = await mkdtemp(join(tmpdir(), 'bench-cli-work-'))
  const began = performance.now()
  const run = spawn(EXECUTABLE, ['-p', 'hello'], { env, cwd, stdio: 'ignore' })
  const exited = once(run, 'exit')
  const requested = await Promise.race([once(model, 'request'), exited.then(() => undefined)])
  if (!requested) throw new Error('the run ended without a request to the model')
  const started = { ms: performance.now() - began, megabytes: megabytesOf(run.pid!) }
  run.kill('SIGKILL')
  await exited
  model.closeAllConnections()
  model.close()
  await rm(cwd, { recursive: true, force: true })
  return started
}
