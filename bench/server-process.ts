/** The executable as a process to be measured: started, waited for, killed. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import http from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../test/support/free-port.ts'

export const EXECUTABLE = join(import.meta.dirname, '../dist/agent-server')
export const KEY = 'bench-master-key-0123456789'
/** All servers that a benchmark starts one after the other have this port, and so the same URL. */
const PORT = await freePort()
export const URL = `http://127.0.0.1:${PORT}`

/** Its model is never asked. */
export const NEW_CONVERSATION = {
  llm_config: { model: 'none', base_url: 'http://127.0.0.1:9/v1', api_key: 'bench-model-key' },
}

/** How often it is asked whether it answers, milliseconds. */
const PROBE_MS = 2

/** An executable to be measured, and the port for it. By default the one of the working tree, at `URL`. */
export type Place = { readonly executable?: string; readonly port?: number }

type Process = {
  readonly pid: number
  readonly url: string
  readonly kill: (signal?: NodeJS.Signals) => Promise<void>
}

export type ServerProcess = Process & {
  /** The time from start to the first 200 of `/alive`, and to that of `/ready`. */
  readonly ms: number
  readonly readyMs: number
  /** Resident memory at that moment. */
  readonly megabytes: number
}

export async function startServerProcess(
  home: string,
  settings: Record<string, string> = {},
  place: Place = {},
): Promise<ServerProcess> {
  return await untilReady(spawnServer(home, settings, place))
}

const BARE = `require('node:http').createServer((_, response) => response.end()).listen(process.argv[1], '127.0.0.1')`

/** A bare HTTP server on the same port. */
export const startBareServer = (): Promise<ServerProcess> =>
  untilReady(spawnProcess([process.execPath, '-e', BARE, String(PORT)], process.env, PORT))

export type UntilCreated = Process & {
  /** The time from start until a conversation was created. */
  readonly createdMs: number
}

/** Starts the executable and creates a conversation as soon as it accepts connections. */
export const startUntilCreated = (home: string, place: Place = {}): Promise<UntilCreated> =>
  untilCreated(spawnServer(home, {}, place))

/** The same with a bare server that writes and syncs files with these contents, by name, for each create. */
export const startBareUntilCreated = (home: string, files: string): Promise<UntilCreated> =>
  untilCreated(
    spawnProcess(
      [process.execPath, join(import.meta.dirname, 'bare-creates.mjs'), String(PORT), home, files],
      process.env,
      PORT,
    ),
  )

function spawnServer(home: string, settings: Record<string, string>, place: Place): Spawned {
  const { executable = EXECUTABLE, port = PORT } = place
  if (!existsSync(executable)) throw new Error(`${executable} is missing: npm run build`)
  const env = {
    PATH: process.env['PATH'],
    HOME: home,
    // It identifies the processes that are to end with the benchmark.
    TMPDIR: process.env['TMPDIR'],
    OPENHANDS_MASTER_KEY: KEY,
    OPENHANDS_DATA_DIR: join(home, 'data'),
    OPENHANDS_SERVER_HOST: '127.0.0.1',
    OPENHANDS_SERVER_PORT: String(port),
    ...settings,
  }
  return spawnProcess([executable, 'serve'], env, port)
}

type Spawned = Process & {
  /** Milliseconds from the start until the request was answered with success. */
  readonly timeTo: (path: string, body?: unknown) => Promise<number>
}

function spawnProcess([file = '', ...args]: readonly string[], env: NodeJS.ProcessEnv, port: number): Spawned {
  const began = performance.now()
  const server = spawn(file, args, { env, stdio: 'ignore' })
  const exited = once(server, 'exit')
  const url = `http://127.0.0.1:${port}`
  return {
    pid: server.pid!,
    url,
    async timeTo(path, body) {
      for (;;) {
        const status = await statusOf(url + path, body)
        if (status === 200 || status === 201) return performance.now() - began
        if (server.exitCode !== null) throw new Error(`${file} ended with ${server.exitCode}`)
        // What has not started yet refuses connections or answers with 503.
        if (status >= 400 && status < 500) throw new Error(`${path} was answered with ${status}`)
        await sleep(PROBE_MS)
      }
    },
    async kill(signal = 'SIGKILL') {
      server.kill(signal)
      await exited
    },
  }
}

async function untilReady({ timeTo, ...server }: Spawned): Promise<ServerProcess> {
  const ms = await timeTo('/alive')
  const readyMs = await timeTo('/ready')
  return { ...server, ms, readyMs, megabytes: megabytesOf(server.pid) }
}

async function untilCreated({ timeTo, ...server }: Spawned): Promise<UntilCreated> {
  const createdMs = await timeTo('/conversations', NEW_CONVERSATION)
  return { ...server, createdMs }
}

/** Its resident memory. */
export const megabytesOf = (pid: number): number =>
  (Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024) / 1e6

/** 0 while the connection is refused. With a body it is a POST. */
function statusOf(url: string, body?: unknown): Promise<number> {
  return new Promise((resolve) => {
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
    const method = body === undefined ? 'GET' : 'POST'
    const probe = http.request(url, { method, headers, agent: false }, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    probe.on('error', () => resolve(0))
    probe.end(body === undefined ? undefined : JSON.stringify(body))
  })
}
