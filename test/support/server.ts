/** A real server in a process of its own, driven only through what a user has: arguments, environment, HTTP, signals. */
import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createCgroupFactory } from '../../src/limits/cgroup-factory.ts'
import type { TestDatabase } from './postgres.ts'
import { freePort } from './free-port.ts'
import { until } from './until.ts'
import { removeAll } from './remove-all.ts'

export { freePort }

/** False if the servers of this run have their data in PostgreSQL. */
export const hasFiles = process.env['TEST_STORAGE'] !== 'postgres'

export const KEY = 'test-master-key-0123456789'

/** A program and its first arguments. */
type Program = readonly [string, ...string[]]

/** `AGENT_SERVER_BIN` is the executable to test; without it the sources are. */
const PROGRAM: Program = process.env['AGENT_SERVER_BIN']
  ? [process.env['AGENT_SERVER_BIN']]
  : [process.execPath, join(import.meta.dirname, '../../src/main.ts')]

export type Answer<T = any> = { readonly status: number; readonly body: T; readonly headers: Headers } // eslint-disable-line typescript/no-explicit-any

export type TestServer = AsyncDisposable & {
  readonly url: string
  readonly home: string
  readonly dataDir: string
  readonly pid: number
  /** All it has said so far. */
  readonly output: () => string
  readonly call: (method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<Answer>
  /** Resolves to the exit code when it has ended by itself. */
  readonly exited: () => Promise<number | null>
  /** Resolves to the exit code, null when a signal ended it. */
  readonly stop: (signal?: NodeJS.Signals) => Promise<number | null>
  /** Stops it and starts it again on the same data and port, with these settings changed. */
  readonly restart: (signal?: NodeJS.Signals, changes?: Record<string, string>) => Promise<void>
}

export type ServerOptions = {
  readonly env?: Record<string, string>
  readonly wrapper?: readonly string[]
  /** The directory for its temporary files and its data. */
  readonly place?: string
  /** Puts files into the data directory before the first start. */
  readonly prepare?: (dataDir: string) => Promise<void>
}

/** Resolves when it has started. Its data is removed when it is disposed of. */
export async function startServer(options: ServerOptions = {}): Promise<TestServer> {
  const { env = {}, wrapper = [], place = tmpdir(), prepare } = options
  const home = await mkdtemp(join(place, 'agent-server-test-'))
  const dataDir = join(home, 'data')
  await prepare?.(dataDir)
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const database = await ownDatabase(env)
  const settings = {
    ...(database && { OPENHANDS_DATABASE_URL: database.url }),
    OPENHANDS_MASTER_KEY: KEY,
    OPENHANDS_DATA_DIR: dataDir,
    OPENHANDS_SERVER_HOST: '127.0.0.1',
    OPENHANDS_SERVER_PORT: String(port),
    TMPDIR: place,
    ...env,
  }
  const how = { wrapper, cwd: home }
  let running = launch(['serve'], { env: settings, ...how })
  await waitUntilStarted(url, running)

  const stop = async (signal: NodeJS.Signals = 'SIGTERM') => {
    running.child.kill(signal)
    return await running.exited
  }
  return {
    url,
    home,
    dataDir,
    get pid() {
      return running.child.pid!
    },
    output: () => running.output(),
    exited: () => running.exited,
    call: (method, path, body, headers) => callApi(url, method, path, body, headers),
    stop,
    async restart(signal, changes = {}) {
      await stop(signal)
      running = launch(['serve'], { env: { ...settings, ...changes }, ...how })
      await waitUntilStarted(url, running)
    },
    async [Symbol.asyncDispose]() {
      await stop('SIGKILL')
      // The next start would remove its groups, and there is none. The disk of its data may be gone, or full.
      await createCgroupFactory(dataDir).catch(() => {})
      await database?.[Symbol.asyncDispose]()
      await removeAll(home)
    },
  }
}

/** Returns a new database for a server that names none, with `TEST_STORAGE=postgres`. */
export async function ownDatabase(env: Readonly<Record<string, string>>): Promise<TestDatabase | undefined> {
  if (hasFiles || env['OPENHANDS_DATABASE_URL'] !== undefined) return undefined
  const { createDatabase } = await import('./postgres.ts')
  return await createDatabase()
}

/** The command line of the program under test. */
export const commandLine = (args: readonly string[]): [string, ...string[]] => [...PROGRAM, ...args]

export type Launched = {
  readonly child: ChildProcess
  readonly exited: Promise<number | null>
  readonly output: () => string
}

/** Runs the program under test; its environment is what is given, and nothing else but the path. */
export function launch(
  args: readonly string[],
  { env = {}, wrapper = [], cwd }: ServerOptions & { cwd?: string } = {},
): Launched {
  const [command, ...rest] = [...wrapper, ...commandLine(args)]
  const child = spawn(command!, rest, {
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], TMPDIR: process.env['TMPDIR'], ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(cwd !== undefined && { cwd }),
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (said += text))
  const exited = once(child, 'close').then(([code]) => code as number | null)
  return { child, exited, output: () => said }
}

async function waitUntilStarted(url: string, { child, output }: Launched): Promise<void> {
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null
  let isReady = false
  const look = async () => hasEnded() || (isReady = await hasStarted(url))
  await until('the start of the server', look).catch(() => {}) // as an end
  if (isReady && !hasEnded()) return
  throw new Error(`the server did not start (exit code ${child.exitCode}):\n${output()}`)
}

/** Returns true also if the disk cannot be written. */
async function hasStarted(url: string): Promise<boolean> {
  try {
    const { reason } = (await (await fetch(`${url}/ready`)).json()) as { reason?: string }
    return reason !== 'starting'
  } catch {
    return false // nobody listens yet
  }
}

export async function callApi(
  url: string,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const response = await fetch(url + path, {
    method,
    headers: {
      authorization: `Bearer ${KEY}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, body: text ? JSON.parse(text) : undefined }
}
