/** A real PgBouncer in front of the PostgreSQL of the test run. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { findCommand, PGBOUNCER } from '../../scripts/provide.mjs'
import type { TestDatabase } from './postgres.ts'
import { freePort } from './server.ts'
import { AS_NOBODY } from './postgres.ts'
import { until } from './until.ts'

export type TestPooler = AsyncDisposable & {
  /** Leads to the database through it. */
  readonly url: string
  readonly port: number
}

/** It has fewer connections to the database than the server makes, so that these get different ones. */
const CONNECTIONS = 3

export async function startPgBouncer(database: TestDatabase, mode: 'transaction' | 'session'): Promise<TestPooler> {
  const place = await mkdtemp(join(tmpdir(), 'pgbouncer-'))
  await chmod(place, 0o755)
  const port = await freePort()
  const settings = {
    listen_addr: '127.0.0.1',
    listen_port: port,
    unix_socket_dir: '',
    auth_type: 'any',
    pool_mode: mode,
    default_pool_size: mode === 'transaction' ? CONNECTIONS : 20,
  }
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`)
  const config = join(place, 'pgbouncer.ini')
  const target = `* = host=127.0.0.1 port=${database.port} user=postgres`
  await writeFile(config, ['[databases]', target, '[pgbouncer]', ...lines, ''].join('\n'))
  const [program, ...args] = [...(process.getuid?.() === 0 ? AS_NOBODY : []), findCommand(PGBOUNCER)!, config]
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (said += text))
  const exited = once(child, 'close')
  const through = new URL(database.url)
  through.port = String(port)
  await until('a connection through PgBouncer', async () => {
    if (child.exitCode !== null) throw new Error(`PgBouncer ended: ${said}`)
    const client = new Client({ connectionString: through.href })
    return await client
      .connect()
      .then(() => client.end())
      .then(
        () => true,
        () => false,
      )
  })
  return {
    url: through.href,
    port,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await exited
      await rm(place, { recursive: true, force: true })
    },
  }
}
