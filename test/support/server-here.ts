/**
 * A server in the process of the test: its code is loaded and warm, so it costs a fraction of a process. For tests that
 * look at nothing but its answers and its files, and neither kill it nor read its log.
 */
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startApp } from '../../src/app.ts'
import { ensureWritable, readConfig } from '../../src/config/config.ts'
import { VARIABLES } from '../../src/config/variables.ts'
import { freePort } from './free-port.ts'
import { removeAll } from './remove-all.ts'
import { callApi, KEY, ownDatabase } from './server.ts'
import type { TestServer } from './server.ts'

/** An empty value counts as not set: a setting of whoever runs the tests has no effect. */
const NO_SETTINGS = Object.fromEntries(Object.keys(VARIABLES).map((name) => [name, '']))

/** Resolves when it has started. Its data is removed when it is disposed of. */
export async function startServerHere(env: Readonly<Record<string, string>> = {}): Promise<TestServer> {
  const home = await mkdtemp(join(tmpdir(), 'agent-server-test-'))
  const dataDir = join(home, 'data')
  const port = await freePort()
  const database = await ownDatabase(env)
  const settings = {
    ...NO_SETTINGS,
    ...(database && { OPENHANDS_DATABASE_URL: database.url }),
    OPENHANDS_MASTER_KEY: KEY,
    OPENHANDS_DATA_DIR: dataDir,
    OPENHANDS_SERVER_HOST: '127.0.0.1',
    OPENHANDS_SERVER_PORT: String(port),
    // The output is that of the tests.
    OPENHANDS_LOG_LEVEL: 'CRITICAL',
    OPENHANDS_LOG_FORMAT: 'json',
    ...env,
  }
  let app: Awaited<ReturnType<typeof startWith>> | undefined = await startWith(settings)

  /** Does what SIGTERM does to a process. */
  const stop = async (signal: NodeJS.Signals = 'SIGTERM') => {
    if (signal !== 'SIGTERM') throw notHere(signal)
    const stopping = app
    app = undefined
    await stopping?.drain()
    if (stopping && !(await stopping.close())) throw new Error('the server did not end everything')
    return 0
  }
  const url = `http://127.0.0.1:${port}`
  return {
    url,
    home,
    dataDir,
    get pid(): number {
      throw notHere('pid')
    },
    output: () => {
      throw notHere('output')
    },
    exited: () => {
      throw notHere('exited')
    },
    call: (method, path, body, headers) => callApi(url, method, path, body, headers),
    stop,
    async restart(signal, changes = {}) {
      await stop(signal)
      app = await startWith({ ...settings, ...changes })
    },
    async [Symbol.asyncDispose]() {
      await stop()
      await database?.[Symbol.asyncDispose]()
      await removeAll(home)
    },
  }
}

async function startWith(settings: Readonly<Record<string, string>>) {
  const config = readConfig(settings)
  await ensureWritable(config.dataDir, 'OPENHANDS_DATA_DIR')
  await ensureWritable(config.workdirBase, 'OPENHANDS_WORKDIR_BASE')
  const app = await startApp(config)
  await app.ready
  return app
}

const notHere = (what: string) => new Error(`a server in the process of the test has no ${what}: use startServer()`)
