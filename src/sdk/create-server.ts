/** `createServer()`: a server in this process that others can reach, with the same sessions as `query()` there. */
import type { App } from '../wiring/start-server.ts'
import type { AgentServerClient } from '../client/client.ts'
import { createClient } from '../client/client.ts'
import { ensureWritable, readConfig } from '../config/config.ts'
import { masterKeySource } from '../config/environment.ts'
import { readDataDir } from '../config/paths.ts'
import type { Config } from '../config/config.ts'
import { keepKey } from '../config/kept-key.ts'
import type { Name } from '../config/variables.ts'
import { VARIABLES } from '../config/variables.ts'
import { withoutUndefined } from '../lib/without-undefined.ts'
import type { OptionKind } from './options/check-options.ts'
import { check, NAME, NUMBER, RECORD, TEXT } from './options/check-options.ts'
import type { SharedHost } from './local/shared-host.ts'
import { acquireHost } from './local/shared-host.ts'

export type CreateServerOptions = {
  /** Default: 127.0.0.1. */
  readonly host?: string | undefined
  /** Default: a free one. */
  readonly port?: number | undefined
  /** Default: the data directory of the server. */
  readonly persistDir?: string | undefined
  /** The master key. Default: `OPENHANDS_MASTER_KEY`, or one that is generated and kept in the directory. */
  readonly apiKey?: string | undefined
  /** Further settings, by the names of docs/configuration.md. They take precedence over the environment. */
  readonly settings?: Partial<Record<Name, string>> | undefined
}

export type RunningServer = AsyncDisposable & {
  readonly url: string
  /** The key for clients. */
  readonly apiKey: string
  /** A client of this server. */
  readonly client: AgentServerClient
  /** Ends streams and runs, and closes the server. Idempotent. */
  readonly close: () => Promise<void>
}

const OPTIONS = { host: NAME, port: NUMBER, persistDir: NAME, apiKey: NAME, settings: RECORD } satisfies Record<
  keyof CreateServerOptions,
  OptionKind
>
const SETTINGS = Object.fromEntries(Object.keys(VARIABLES).map((name) => [name, TEXT]))

/** Resolves when it is ready. Throws a `DataDirectoryInUse` error if another server has the directory. */
export async function createServer(options: CreateServerOptions = {}): Promise<RunningServer> {
  check('option of createServer()', options, OPTIONS)
  check('setting', options.settings, SETTINGS)
  const config = readConfig(await settingsOf(options))
  await ensureWritable(config.dataDir, 'OPENHANDS_DATA_DIR')
  await ensureWritable(config.workdirBase, 'OPENHANDS_WORKDIR_BASE')
  const host = acquireHost(config.dataDir)
  try {
    const app = await startWhole(config, host)
    host.hasServer = true
    return serverOf(app, host, config.masterKeys[0])
  } catch (error) {
    await host.release()
    throw error
  }
}

/** Queries of this process can have functions as hooks there, too. */
async function startWhole(config: Config, host: SharedHost): Promise<App> {
  // Loaded here: a program that only connects does not need it.
  const { startApp } = await import('../app.ts')
  const app = await startApp(config, { callbackHooksOf: host.callbackHooks.of })
  try {
    await app.ready
    return app
  } catch (error) {
    await app.close()
    throw error
  }
}

async function settingsOf({ host = '127.0.0.1', port = 0, persistDir, apiKey, settings = {} }: CreateServerOptions) {
  const givenSettings = withoutUndefined({ ...settings, OPENHANDS_DATA_DIR: persistDir, OPENHANDS_MASTER_KEY: apiKey })
  const hasKey = givenSettings.OPENHANDS_MASTER_KEY !== undefined || masterKeySource() !== undefined
  return {
    OPENHANDS_SERVER_HOST: host,
    OPENHANDS_SERVER_PORT: String(port),
    // The output is that of this program.
    OPENHANDS_LOG_LEVEL: 'CRITICAL',
    OPENHANDS_LOG_FORMAT: 'json',
    ...settings,
    ...givenSettings,
    ...(!hasKey && { OPENHANDS_MASTER_KEY: (await keepKey(readDataDir(givenSettings))).key }),
  }
}

function serverOf(app: App, host: SharedHost, apiKey: string): RunningServer {
  let closing: Promise<void> | undefined
  const closeOnce = async () => {
    host.hasServer = false
    await app.close()
    await host.release()
  }
  const close = () => (closing ??= closeOnce())
  const { url } = app
  return { url, apiKey, client: createClient({ baseUrl: url, apiKey }), close, [Symbol.asyncDispose]: close }
}
