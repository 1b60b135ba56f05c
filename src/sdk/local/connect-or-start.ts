/**
 * Reaches the server of a data directory: connects to the process that holds it, or starts the server in this process. The
 * lock decides which; the record next to it says where the holder is.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { readLocalRecord } from '../../access/local-record.ts'
import type { App, StartOptions } from '../../app.ts'
import { startApp } from '../../app.ts'
import { ensureWritable, masterKeySource, readConfig } from '../../config/config.ts'
import { keepKey } from '../../config/kept-key.ts'
import type { LocalFetch } from './local-fetch.ts'
import { createLocalFetch } from './local-fetch.ts'

export type LocalServer = AsyncDisposable & {
  /** Where the server listens: `unix:` and a path, or an http URL. */
  readonly address: string
  /** Acts as the master key, for as long as the server runs. */
  readonly credential: string
  readonly baseUrl: string
  readonly fetch: typeof globalThis.fetch
  /** It runs in this process, and ends when this is disposed. */
  readonly isOwn: boolean
}

/** How long a directory may be locked without a server that answers, in milliseconds. */
const PATIENCE_MS = 10_000
const RETRY_MS = 100

/** Throws an error that says what to do if the directory is in use by a process that cannot be reached. */
export async function connectOrStart(
  dataDir: string,
  signal?: AbortSignal,
  options: Pick<StartOptions, 'callbackHooksOf'> = {},
): Promise<LocalServer> {
  const deadline = performance.now() + PATIENCE_MS
  for (;;) {
    signal?.throwIfAborted()
    const found = (await start(dataDir, options)) ?? (await connect(dataDir))
    if (found) return found
    if (performance.now() > deadline) throw unreachable(dataDir)
    await sleep(RETRY_MS, undefined, { signal })
  }
}

/** Returns undefined if another process, or another part of this one, holds the directory. */
async function start(dataDir: string, options: StartOptions): Promise<LocalServer | undefined> {
  const key = masterKeySource() ? undefined : (await keepKey(dataDir)).key
  const config = readConfig({
    OPENHANDS_DATA_DIR: dataDir,
    ...(key !== undefined && { OPENHANDS_MASTER_KEY: key }),
    // The output is that of the embedding program.
    OPENHANDS_LOG_LEVEL: 'CRITICAL',
    OPENHANDS_LOG_FORMAT: 'json',
  })
  await ensureWritable(config.dataDir, 'OPENHANDS_DATA_DIR')
  const app = await startApp(config, { ...options, isLocal: true }).catch((error: unknown) => {
    if (error instanceof Error && error.name === 'DataDirectoryInUse') return undefined
    throw error
  })
  return app && (await whenReady(app))
}

async function whenReady(app: App): Promise<LocalServer> {
  try {
    await app.ready
  } catch (error) {
    await app.close()
    throw error
  }
  const local = createLocalFetch(app.local.address)
  return serverAt(app.local, local, async () => void (await app.close()))
}

async function connect(dataDir: string): Promise<LocalServer | undefined> {
  const record = await readLocalRecord(dataDir)
  if (!record) return undefined
  const local = createLocalFetch(record.address)
  if (await isReady(local)) return serverAt(record, local)
  await local[Symbol.asyncDispose]()
  return undefined
}

/** False while it starts or stops, and if nobody listens there any more. */
async function isReady({ fetch, baseUrl }: LocalFetch): Promise<boolean> {
  try {
    return (await fetch(`${baseUrl}/ready`)).ok
  } catch {
    return false
  }
}

function serverAt(
  { address, credential }: App['local'],
  { fetch, baseUrl, ...local }: LocalFetch,
  close?: () => Promise<void>,
): LocalServer {
  return {
    address,
    credential,
    baseUrl,
    fetch,
    isOwn: close !== undefined,
    async [Symbol.asyncDispose]() {
      await local[Symbol.asyncDispose]()
      await close?.()
    },
  }
}

const unreachable = (dataDir: string) =>
  new Error(
    `${dataDir} is in use by a server that cannot be reached from here. Pass its address and a key as the option server, stop it, or use another directory.`,
  )
