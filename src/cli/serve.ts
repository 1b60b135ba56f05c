/** `agent-server serve`: runs the server from its first line of output to its exit code. */
import { finished } from 'node:stream/promises'
import { readAddress } from '../config/address.ts'
import { createReader, masterKeySource, unknownVariables } from '../config/environment.ts'
import { readDataDir } from '../config/paths.ts'
import type { GeneratedKey } from '../config/kept-key.ts'
import type { Name } from '../config/variables.ts'
import type { ScriptedModel } from '../llm/scripted/scripted-model.ts'
import { listenOn } from '../http/listen.ts'
import { withoutUndefined } from '../lib/without-undefined.ts'
import { endPreparation } from '../process-settings.ts'
import { loadConfig, loadServices } from '../wiring/load-server.ts'
import { END_SIGNALS } from './terminal/end-signals.ts'
import { exitNow } from './terminal/exit.ts'
import { flushLog } from './terminal/lost-output.ts'
import type { StartFacts } from './start-summary.ts'

export type ServeOptions = {
  /** Create a key on first use and store it in the data directory; listen on this machine only. */
  readonly generateKey: boolean
  /** Conversations without `llm_config` use a stand-in for a model, in this process. */
  readonly scriptedModel: boolean
  /** The end of standard input is like a signal: a program that was killed ends what it has started. */
  readonly stopWithStdin: boolean
  readonly host: string | undefined
  readonly port: string | undefined
  readonly logFormat: string | undefined
}

/** Longer than a close may take; after that the process exits in any case. */
const EXIT_TIMEOUT_MS = 10_000

/**
 * Resolves when a signal has stopped the server; the exit code is 1 if it could not end everything. Throws a
 * `ConfigError`, or the error that prevented it from listening or that ended it.
 */
export async function serve(options: ServeOptions): Promise<void> {
  const unknownNames = unknownVariables()
  const generatedKey = options.generateKey && !masterKeySource() ? await keptKey() : undefined
  await using model = options.scriptedModel ? await startModel() : undefined
  const settings = settingsOf(options, generatedKey?.key, model)
  const limitStop = createStopLimit()
  const signal = stopSignal(() => limitStop(EXIT_TIMEOUT_MS))
  const stopReason = options.stopWithStdin ? Promise.race([signal, endOfInput()]) : signal
  // Listen first and load the rest later: a client that connects early waits, instead of being refused.
  const listening = await listenOn(readAddress(createReader(settings)))
  const { ensureWritable, readConfig } = await loadConfig()
  const config = readConfig(settings)
  await ensureWritable(config.dataDir, 'OPENHANDS_DATA_DIR')
  await ensureWritable(config.workdirBase, 'OPENHANDS_WORKDIR_BASE')
  await loadServices()
  const { startApp } = await import('../app.ts')
  const app = await startApp(config, { listening })
  endPreparation()
  try {
    if (unknownNames.length > 0) app.logger.warn(`this server has no such variables: ${unknownNames.join(', ')}`)
    const early = await Promise.race([app.ready, stopReason, app.takenOver])
    if (early === undefined) await tell({ app, config, generatedKey, hasScriptedModel: model !== undefined })
    app.logger.info({ signal: await Promise.race([stopReason, app.takenOver]) }, 'stopping')
    limitStop(config.drainSeconds * 1000 + EXIT_TIMEOUT_MS)
    await Promise.race([app.drain(), app.takenOver])
  } finally {
    limitStop(EXIT_TIMEOUT_MS)
    if (!(await app.close())) process.exitCode = 1
  }
  if (process.exitCode === 1) await exitUnfinished()
  if (!(await flushLog())) exitNow(0)
}

async function keptKey(): Promise<GeneratedKey> {
  const { keepKey } = await import('../config/kept-key.ts')
  return await keepKey(readDataDir())
}

async function tell({
  generatedKey,
  ...startedServer
}: Omit<StartFacts, 'key'> & { readonly generatedKey: GeneratedKey | undefined }) {
  const { placeOfKey } = await import('./master-key.ts')
  const { tellStart } = await import('./start-summary.ts')
  tellStart({ ...startedServer, key: placeOfKey(generatedKey) })
}

async function startModel(): Promise<ScriptedModel & { readonly key: string }> {
  const { startScriptedModel } = await import('../llm/scripted/scripted-model.ts')
  const { DEMO_SCRIPT } = await import('./demo/demo-script.ts')
  const { randomBytes } = await import('node:crypto')
  // A key in the environment is for another endpoint. Random, because each key is redacted in all texts.
  return Object.assign(await startScriptedModel(DEMO_SCRIPT), { key: randomBytes(16).toString('hex') })
}

/** Returns what the command line sets; it takes precedence over the environment. */
function settingsOf(
  options: ServeOptions,
  key: string | undefined,
  model: (Pick<ScriptedModel, 'baseUrl'> & { readonly key: string }) | undefined,
): Partial<Record<Name, string>> {
  return withoutUndefined({
    OPENHANDS_SERVER_HOST: options.host ?? (options.generateKey ? 'localhost' : undefined),
    OPENHANDS_SERVER_PORT: options.port,
    OPENHANDS_LOG_FORMAT: options.logFormat,
    OPENHANDS_MASTER_KEY: key,
    ...(model && { LLM_MODEL: 'scripted', LLM_BASE_URL: model.baseUrl, LLM_API_KEY: model.key }),
  })
}

/** What has not ended may wait for a file system. */
async function exitUnfinished(): Promise<never> {
  await flushLog()
  return exitNow(1)
}

/** Each call of the function begins the time again after which the process exits, in milliseconds. */
function createStopLimit(): (ms: number) => void {
  let timer: NodeJS.Timeout | undefined
  return (ms) => {
    clearTimeout(timer)
    timer = setTimeout(() => exitNow(1), ms).unref()
  }
}

/** A pipe whose writer has failed has ended, too. */
async function endOfInput(): Promise<'end of stdin'> {
  await finished(process.stdin.resume()).catch(() => {})
  return 'end of stdin'
}

/** Sent again, these end the server at once. */
const REPEATED: ReadonlySet<NodeJS.Signals> = new Set(['SIGTERM', 'SIGINT', 'SIGQUIT'])

/** Resolves with the first stop signal, from which a start, too, has limited time. A second one ends the process immediately. */
function stopSignal(limitStop: () => void): Promise<NodeJS.Signals> {
  const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>()
  let isStopping = false
  const stop = (name: NodeJS.Signals) => {
    // A person repeats some signals. A closed terminal sends its own twice, and the kernel those of limits.
    if (isStopping && !REPEATED.has(name)) return
    if (isStopping) exitNow(1)
    isStopping = true
    limitStop()
    resolve(name)
  }
  // Node does not inherit from `nohup` that SIGHUP is ignored.
  for (const name of END_SIGNALS) process.on(name, stop)
  return promise
}
