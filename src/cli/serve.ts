/** `agent-server serve`: runs the server from its first line of output to its exit code. */
import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { App } from '../app.ts'
import { startApp } from '../app.ts'
import type { Config } from '../config/config.ts'
import { makeDirectories } from '../lib/make-directories.ts'
import { endPreparation } from '../process-settings.ts'
import { ensureWritable, hasMasterKey, readConfig, readDataDir } from '../config/config.ts'
import { ConfigError } from '../config/environment.ts'

export type ServeOptions = {
  /** Create a key on first use and store it in the data directory; listen on this machine only. */
  readonly generateKey: boolean
  readonly host: string | undefined
  readonly port: string | undefined
}

/** Longer than a close may take; after that the process exits in any case. */
const EXIT_TIMEOUT_MS = 10_000

/**
 * Resolves when a signal has stopped the server; the exit code is 1 if it could not end everything. Throws a
 * `ConfigError`, or the error that prevented it from listening.
 */
export async function serve(options: ServeOptions): Promise<void> {
  const kept = options.generateKey && !hasMasterKey() ? await keepKey(readDataDir()) : undefined
  const host = options.host ?? (options.generateKey ? 'localhost' : undefined)
  const config = readConfig({
    ...(host !== undefined && { OPENHANDS_SERVER_HOST: host }),
    ...(options.port !== undefined && { OPENHANDS_SERVER_PORT: options.port }),
    ...(kept && { OPENHANDS_MASTER_KEY: kept.key }),
  })
  await ensureWritable(config.dataDir, 'OPENHANDS_DATA_DIR')
  await ensureWritable(config.workdirBase, 'OPENHANDS_WORKDIR_BASE')
  const stopped = stopSignal()
  const app = await startApp(config)
  try {
    const early = await Promise.race([app.ready, stopped])
    endPreparation()
    if (early === undefined) tellStart(app, config, kept)
    app.logger.info({ signal: await stopped }, 'stopping')
  } finally {
    setTimeout(() => process.exit(1), EXIT_TIMEOUT_MS).unref()
    if (!(await app.close())) process.exitCode = 1
  }
}

type KeptKey = { readonly key: string; readonly path: string; readonly isNew: boolean }

/** Returns the key in the data directory; creates it on first use, readable by its owner only. */
async function keepKey(dataDir: string): Promise<KeptKey> {
  const path = join(dataDir, 'master-key')
  try {
    const key = (await readFile(path, 'utf8')).trim()
    if (!key) throw new ConfigError(`${path} holds no key; remove it, and one is made.`)
    return { key, path, isNew: false }
  } catch (error) {
    if (error instanceof ConfigError) throw error
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw cannotKeep(path, error)
  }
  const key = randomBytes(32).toString('hex')
  try {
    await makeDirectories(dataDir, 0o700)
    await writeFile(path, `${key}\n`, { mode: 0o600, flag: 'wx' })
  } catch (error) {
    throw cannotKeep(path, error)
  }
  return { key, path, isNew: true }
}

function cannotKeep(path: string, error: unknown): ConfigError {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'error'
  return new ConfigError(
    `The master key cannot be kept in ${path} (${code}); set OPENHANDS_DATA_DIR, or OPENHANDS_MASTER_KEY.`,
    { cause: error },
  )
}

function tellStart({ url, logger, missingSandbox }: App, config: Config, kept: KeptKey | undefined): void {
  if (missingSandbox !== undefined) {
    logger.warn(
      `commands run on this host, as this user, without a sandbox (${missingSandbox}); run the server in a separate machine or container`,
    )
  }
  logger.info({ data_dir: config.dataDir, workdir_base: config.workdirBase }, 'ready')
  if (!kept) return
  const bearer = kept.isNew ? kept.key : `$(cat '${kept.path}')`
  process.stdout.write(
    [
      '',
      `agent-server listens on ${url}, its API is described at ${url}/docs`,
      kept.isNew
        ? `Its master key was made now, and is kept in ${kept.path}. Try:`
        : `Its master key is in ${kept.path}. Try:`,
      '',
      `  curl -H "Authorization: Bearer ${bearer}" ${url}/info`,
      '',
      '',
    ].join('\n'),
  )
}

/** Resolves with the first stop signal; a second one ends the process immediately. */
function stopSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const name of ['SIGTERM', 'SIGINT'] as const) {
      process.once(name, () => {
        resolve(name)
        process.once(name, () => process.exit(1))
      })
    }
  })
}
