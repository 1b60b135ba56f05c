/** How long the executable takes to answer, beside the least a Node process takes, and what memory it has then. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import http from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const EXECUTABLE = join(import.meta.dirname, '../dist/agent-server')
const ROUNDS = 11
const PORT = 18_423

export type StartResult = {
  /** Median ms of `node -e 0`, from start to exit. */
  readonly node: number
  /** Median ms from start to the first 200 of `/alive`. */
  readonly alive: number
  /** 2 × node + 150 ms. */
  readonly allowed: number
  /** Median resident memory at that moment, MB. */
  readonly residentMb: number
}

export async function benchStart(): Promise<StartResult> {
  if (!existsSync(EXECUTABLE)) throw new Error('dist/agent-server is missing: npm run build')
  const home = await mkdtemp(join(tmpdir(), 'bench-start-'))
  try {
    const nodes: number[] = []
    const starts: { ms: number; mb: number }[] = []
    // In turn, so that what else the machine does hits both alike; the first round makes files and warms caches.
    for (let round = 0; round <= ROUNDS; round++) {
      nodes.push(await timeNode())
      starts.push(await timeServer(home))
    }
    const node = median(nodes.slice(1))
    const alive = median(starts.slice(1).map((start) => start.ms))
    const result = { node, alive, allowed: 2 * node + 150, residentMb: median(starts.slice(1).map((start) => start.mb)) }
    print(result)
    return result
  } finally {
    await rm(home, { recursive: true, force: true })
  }
}

async function timeNode(): Promise<number> {
  const began = performance.now()
  await once(spawn(process.execPath, ['-e', '0'], { stdio: 'ignore' }), 'exit')
  return performance.now() - began
}

async function timeServer(home: string): Promise<{ ms: number; mb: number }> {
  const env = {
    PATH: process.env['PATH'],
    HOME: home,
    OPENHANDS_MASTER_KEY: 'bench-master-key-0123456789',
    OPENHANDS_DATA_DIR: join(home, 'data'),
    OPENHANDS_SERVER_HOST: '127.0.0.1',
    OPENHANDS_SERVER_PORT: String(PORT),
  }
  const began = performance.now()
  const server = spawn(EXECUTABLE, ['serve'], { env, stdio: 'ignore' })
  const exited = once(server, 'exit')
  while (!(await answers())) await new Promise((resolve) => setTimeout(resolve, 2))
  const ms = performance.now() - began
  const kb = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))?.[1])
  server.kill('SIGKILL')
  await exited
  return { ms, mb: kb / 1024 }
}

function answers(): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = http.get({ host: '127.0.0.1', port: PORT, path: '/alive', agent: false }, (response) => {
      response.resume()
      resolve(response.statusCode === 200)
    })
    probe.on('error', () => resolve(false))
  })
}

const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[values.length >>> 1]!

function print({ node, alive, allowed, residentMb }: StartResult): void {
  const times = `node -e 0 ${node.toFixed(0)} ms, /alive after ${alive.toFixed(0)} ms`
  console.log(`start: ${times} (${(alive / allowed).toFixed(2)} of the ${allowed.toFixed(0)} ms allowed), ${residentMb.toFixed(0)} MB resident`)
}
