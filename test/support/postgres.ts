/** A real PostgreSQL for the test run: started by the first file that needs it, with a database for each test. */
import { spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chown, mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { Client } from 'pg'
import { inject } from 'vitest'
import { findCommand, ofPostgres } from '../../scripts/provide.mjs'
import { codeOf } from '../../src/lib/error-code.ts'
import { until } from './until.ts'

/** The server refuses to run as root. */
const NOBODY = 65_534
export const AS_NOBODY = ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups']

/** The password is not checked: it shows where the URL is printed. */
const PASSWORD = 'password-of-the-database'

export type TestDatabase = AsyncDisposable & {
  readonly url: string
  readonly port: number
  /** Executes a statement as another program does. */
  readonly query: (text: string, values?: readonly unknown[]) => Promise<Record<string, unknown>[]>
}

/** Resolves to a new database, which is dropped when it is disposed of. */
export async function createDatabase(): Promise<TestDatabase> {
  return await createDatabaseAt(await startedPort())
}

/** A server of one test, which stops and starts it as it likes. */
export type TestPostgres = AsyncDisposable & {
  readonly createDatabase: () => Promise<TestDatabase>
  /** `SIGINT` ends its sessions, and `SIGQUIT` is as a crash. */
  readonly stop: (signal: 'SIGINT' | 'SIGQUIT') => Promise<void>
  readonly start: () => Promise<void>
  /** Restarts it, with a standby that has each commit before it is acknowledged. Its data is in this directory, which exists. */
  readonly startStandby: (place: string) => Promise<TestStandby>
}

export type TestStandby = AsyncDisposable & {
  readonly port: number
  /** Makes it the primary. Executes a statement there. */
  readonly promote: () => Promise<void>
  readonly query: (text: string) => Promise<Record<string, unknown>[]>
}

/** Resolves to a new server, with its data in this directory, which exists. */
export async function startPostgres(
  place: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<TestPostgres> {
  await initialise(place)
  const port = await freePort()
  let child = await launch(place, port, settings)
  const stop: TestPostgres['stop'] = async (signal) => {
    const exited = child.exitCode === null && once(child, 'exit')
    child.kill(signal)
    await exited
  }
  const start = async () => {
    child = await launch(place, port, settings)
  }
  return {
    createDatabase: () => createDatabaseAt(port),
    stop,
    start,
    async startStandby(itsPlace) {
      await stop('SIGINT')
      if (isRoot) await chown(itsPlace, NOBODY, NOBODY)
      // `cp` keeps owners and modes.
      spawnSync('cp', ['-a', join(place, 'data'), itsPlace])
      await writeFile(join(itsPlace, 'data/standby.signal'), '')
      await start()
      const itsPort = await freePort()
      const primary = `host=127.0.0.1 port=${port} user=postgres application_name=standby`
      const standby = await launch(itsPlace, itsPort, { primary_conninfo: primary })
      const at = (onPort: number) => (text: string) => query(`postgresql://postgres@127.0.0.1:${onPort}/postgres`, text)
      await at(port)(`alter system set synchronous_standby_names = 'standby'`)
      await at(port)('select pg_reload_conf()')
      await until('a synchronous standby', async () => {
        const [row] = await at(port)('select sync_state from pg_stat_replication')
        return row?.['sync_state'] === 'sync'
      })
      return {
        port: itsPort,
        query: at(itsPort),
        async promote() {
          // It would wait for a standby of its own.
          await at(itsPort)('select pg_promote()')
          await at(itsPort)(`alter system reset synchronous_standby_names`)
          await at(itsPort)('select pg_reload_conf()')
        },
        async [Symbol.asyncDispose]() {
          const exited = standby.exitCode === null && once(standby, 'exit')
          standby.kill('SIGQUIT')
          await exited
        },
      }
    },
    [Symbol.asyncDispose]: () => stop('SIGQUIT'),
  }
}

async function createDatabaseAt(port: number): Promise<TestDatabase> {
  const name = `test_${randomBytes(6).toString('hex')}`
  const urlOf = (database: string) => `postgresql://postgres:${PASSWORD}@127.0.0.1:${port}/${database}`
  await query(urlOf('postgres'), `create database ${name}`)
  return {
    url: urlOf(name),
    port,
    query: (text, values) => query(urlOf(name), text, values),
    async [Symbol.asyncDispose]() {
      await query(urlOf('postgres'), `drop database ${name} with (force)`)
    },
  }
}

async function query(url: string, text: string, values: readonly unknown[] = []): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(text, [...values])).rows
  } finally {
    await client.end()
  }
}

/** The machine does not fail in tests, and a database lives for seconds: nothing is flushed, cleaned up or compiled. */
const UNSAFE = { fsync: 'off', full_page_writes: 'off', autovacuum: 'off', jit: 'off' }

/** The files of one worker start it, and those of the others wait. */
async function startedPort(): Promise<number> {
  const place = join(inject('temporary'), 'postgres')
  try {
    await mkdir(place)
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error
    return await until('the start of PostgreSQL', () => portIn(place))
  }
  return await start(place)
}

async function portIn(place: string): Promise<number | undefined> {
  const text = await readFile(join(place, 'port'), 'utf8').catch(() => undefined)
  return text === undefined ? undefined : Number(text)
}

async function start(place: string): Promise<number> {
  await initialise(place)
  const port = await freePort()
  await launch(place, port, UNSAFE)
  await writeFile(join(place, 'port.new'), String(port))
  await rename(join(place, 'port.new'), join(place, 'port'))
  return port
}

const isRoot = process.getuid?.() === 0
const prefix = isRoot ? AS_NOBODY : []
const environmentIn = (place: string) => ({ PATH: process.env['PATH'], TMPDIR: place, LC_ALL: 'C' })

async function initialise(place: string): Promise<void> {
  if (isRoot) await chown(place, NOBODY, NOBODY)
  const data = join(place, 'data')
  const initdb = [programOf('initdb'), '-D', data, '-U', 'postgres', '--auth=trust', '--no-sync', '-E', 'UTF8']
  const [program = '', ...args] = [...prefix, ...initdb]
  const made = spawnSync(program, args, { env: environmentIn(place), encoding: 'utf8' })
  if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr || String(made.error)}`)
}

async function launch(place: string, port: number, changes: Readonly<Record<string, string>> = {}) {
  const settings = {
    port,
    unix_socket_directories: '',
    listen_addresses: '127.0.0.1',
    dynamic_shared_memory_type: 'mmap',
    ...changes,
  }
  const options = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const [server = '', ...rest] = [...prefix, programOf('postgres'), '-D', join(place, 'data'), ...options]
  const child = spawn(server, rest, { env: environmentIn(place), stdio: 'ignore', detached: true })
  child.unref()
  await until('a connection to PostgreSQL', async () => {
    if (child.exitCode !== null) throw new Error(`PostgreSQL ended with exit code ${child.exitCode}`)
    return await query(`postgresql://postgres@127.0.0.1:${port}/postgres`, 'select').then(Boolean, () => false)
  })
  return child
}

export function programOf(name: 'initdb' | 'postgres' | 'pg_receivewal'): string {
  const path = findCommand(ofPostgres(name))
  if (path === undefined) throw new Error(`${name} was not found`)
  return path
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}
