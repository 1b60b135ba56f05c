/**
 * Reaches the server of a data directory: connects to the process that holds it, or starts the server in this process. The
 * lock decides which; the record next to it says where the holder is.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import type { LocalRecord } from '../../access/local-record.ts'
import { readLocalRecord } from '../../access/local-record.ts'
import { hideFiles } from '../../access/hidden-files.ts'
import type { StartOptions } from '../../app.ts'
import { secretFilePaths } from '../../config/environment.ts'
import type { ServerSettings } from '../../config/variables.ts'
import { backoffMs } from '../../lib/backoff.ts'
import { withinTime } from '../../lib/bounded-wait.ts'
import type { LocalFetch } from '../../http/local/local-fetch.ts'
import { createLocalFetch } from '../../http/local/local-fetch.ts'
import type { OpenPlace } from './local-place.ts'
import { isSocket, openOwnPlace, openPlace } from './local-place.ts'

export type LocalServer = AsyncDisposable & {
  /** The address at which the server listens: `unix:` and a path, or an http URL. */
  readonly address: string
  /** Acts as the master key, for as long as the server runs. */
  readonly credential: string
  readonly baseUrl: string
  readonly fetch: typeof globalThis.fetch
  /** It runs in this process, and ends when this is disposed. */
  readonly isOwn: boolean
  /** It listens for others, too: the one that is started after it needs the directory. */
  readonly isPublic: boolean
}

export type ConnectOptions = Pick<StartOptions, 'callbackHooksOf'> & {
  readonly signal?: AbortSignal | undefined
  /** Further files with secrets, which agents cannot read, whichever process runs them. */
  readonly secretFiles?: readonly string[]
  /** The settings for a server that starts in this process. */
  readonly settings?: ServerSettings
}

/** How long a directory may be locked without a server that answers, in milliseconds. */
const PATIENCE_MS = 30_000
const RETRY_MS = 100
/** An attempt to start begins much of the server before it finds that another one has the directory. */
const STARTS = { firstMs: RETRY_MS, longestMs: 1600 }
/** How long a server may take to say whether it is ready. */
const ANSWER_MS = 10_000

/** Throws an error that says what to do if the directory is in use by a process that cannot be reached. */
export async function connectOrStart(
  dataDir: string,
  { signal, secretFiles = [], ...options }: ConnectOptions = {},
): Promise<LocalServer> {
  await hideFiles(dataDir, [...secretFiles, ...secretFilePaths()])
  // The time counts from the first attempt on: to load the server takes time, too.
  let deadline: number | undefined
  let nextStart = 0
  for (let starts = 0; ;) {
    signal?.throwIfAborted()
    let foundServer = await connect(dataDir, { signal })
    if (!foundServer && performance.now() >= nextStart) {
      foundServer = await start(dataDir, { signal, ...options })
      nextStart = performance.now() + backoffMs(++starts, STARTS)
    }
    if (foundServer && foundServer !== 'not ready') return foundServer
    // It is alive.
    if (foundServer) deadline = undefined
    deadline ??= performance.now() + PATIENCE_MS
    if (performance.now() > deadline) throw await unreachable(dataDir)
    await sleep(RETRY_MS, undefined, { signal })
  }
}

/** A server that starts or stops has answered. */
type FoundServer = LocalServer | 'not ready'

/** Loads the server only here: most programs that connect do not need it. */
async function start(dataDir: string, { signal, ...options }: ConnectOptions): Promise<FoundServer | undefined> {
  const { startLocal } = await import('./start-local.ts')
  const app = await startLocal(dataDir, options)
  // Another process holds the lock, so that the address in its record is not that of a program which came later.
  if (!app) return await connect(dataDir, { signal, isHeld: true })
  return serverAt(app.local, await openOwnPlace(app.local), async () => void (await app.close()))
}

type Connecting = { readonly signal: AbortSignal | undefined; readonly isHeld?: boolean }

/** Undefined if nobody listens there. */
async function connect(dataDir: string, { signal, isHeld = false }: Connecting): Promise<FoundServer | undefined> {
  const record = await readLocalRecord(dataDir)
  if (!record || 'refusal' in record || !(isHeld || isSocket(record.address))) return undefined
  const place = await openPlace(dataDir, record)
  if (!place) return undefined
  const server = serverAt(record, place)
  const answer = await answerOf(server, signal)
  if (answer === 'ready') return server
  await server[Symbol.asyncDispose]()
  return answer
}

async function answerOf(
  { fetch, baseUrl }: LocalFetch,
  signal: AbortSignal = new AbortController().signal,
): Promise<'ready' | 'not ready' | undefined> {
  try {
    return await withinTime(ANSWER_MS, signal, async (both) => {
      const response = await fetch(`${baseUrl}/ready`, { signal: both })
      const { reason } = NotReady.catch({}).parse(await response.json())
      // A server with a full disk still answers what it can. Anything else is not a server of ours.
      if (response.ok || reason === 'storage') return 'ready'
      return reason === 'starting' || reason === 'stopping' ? 'not ready' : undefined
    })
  } catch {
    return undefined
  }
}

const NotReady = z.object({ reason: z.string().optional() })

function serverAt(record: LocalRecord, place: OpenPlace, close?: () => Promise<void>): LocalServer {
  const { fetch, baseUrl, ...local } = createLocalFetch(place.place)
  const { address, credential, url } = record
  return {
    address,
    credential,
    baseUrl,
    fetch,
    isOwn: close !== undefined,
    isPublic: url !== undefined,
    async [Symbol.asyncDispose]() {
      await local[Symbol.asyncDispose]()
      await place[Symbol.asyncDispose]()
      await close?.()
    },
  }
}

async function unreachable(dataDir: string): Promise<Error> {
  const record = await readLocalRecord(dataDir)
  const why = record && 'refusal' in record ? `: ${record.refusal}` : ''
  return new Error(
    `${dataDir} is in use by a server that cannot be reached from here${why}. Pass its address and a key as the option server, stop it, or use another directory.`,
  )
}
