/** The executable as a process to be measured: started, waited for, killed. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import http from 'node:http'
import { join } from 'node:path'

export const EXECUTABLE = join(import.meta.dirname, '../dist/agent-server')
export const KEY = 'bench-master-key-0123456789'
const PORT = 18_423
export const URL = `http://127.0.0.1:${PORT}`

/** How often it is asked whether it answers, milliseconds. */
const PROBE_MS = 2

export type ServerProcess = {
  readonly pid: number
  /** From start to the first 200 of `/alive`, and to that of `/ready`. */
  readonly ms: number
  readonly readyMs: number
  /** Resident memory at that moment. */
  readonly megabytes: number
  readonly kill: (signal?: NodeJS.Signals) => Promise<void>
}

export async function startServerProcess(home: string, settings: Record<string, string> = {}): Promise<ServerProcess> {
  if (!existsSync(EXECUTABLE)) throw new Error('dist/agent-server is missing: npm run build')
  const env = {
    PATH: process.env['PATH'],
    HOME: home,
    OPENHANDS_MASTER_KEY: KEY,
    OPENHANDS_DATA_DIR: join(home, 'data'),
    OPENHANDS_SERVER_HOST: '127.0.0.1',
    OPENHANDS_SERVER_PORT: String(PORT),
    ...settings,
  }
  return await startProcess([EXECUTABLE, 'serve'], env)
}

const BARE = `require('node:http').createServer((_, response) => response.end()).listen(process.argv[1], '127.0.0.1')`

/** A bare HTTP server on the same port. */
export const startBareServer = (): Promise<ServerProcess> =>
  startProcess([process.execPath, '-e', BARE, String(PORT)], process.env)

async function startProcess([file = '', ...args]: readonly string[], env: NodeJS.ProcessEnv): Promise<ServerProcess> {
  const began = performance.now()
  const server = spawn(file, args, { env, stdio: 'ignore' })
  const exited = once(server, 'exit')
  const timeTo = async (path: string) => {
    while (!(await answers(path))) {
      if (server.exitCode !== null) throw new Error(`${file} ended with ${server.exitCode}`)
      await new Promise((resolve) => setTimeout(resolve, PROBE_MS))
    }
    return performance.now() - began
  }
  const ms = await timeTo('/alive')
  const readyMs = await timeTo('/ready')
  const megabytes = megabytesOf(server.pid!)
  const kill = async (signal: NodeJS.Signals = 'SIGKILL') => {
    server.kill(signal)
    await exited
  }
  return { pid: server.pid!, ms, readyMs, megabytes, kill }
}

/** Its resident memory. */
export const megabytesOf = (pid: number): number =>
  (Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024) / 1e6

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = http.get({ host: '127.0.0.1', port: PORT, path, agent: false }, (response) => {
      response.resume()
      resolve(response.statusCode === 200)
    })
    probe.on('error', () => resolve(false))
  })
}
