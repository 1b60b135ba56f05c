/**
 * The server of a data directory, shared by all queries of this process: one of them starts it or connects to it, and the
 * last one closes it. Requests survive the end of another process that held the directory.
 */
import { resolve } from 'node:path'
import { orAborted } from '../../lib/bounded-wait.ts'
import type { LocalServer } from './connect-or-start.ts'
import { connectOrStart } from './connect-or-start.ts'
import { CallbackHooks } from '../hooks/callback-hooks.ts'

/** How often one request looks for the server again. The client repeats requests besides. */
const MAX_ATTEMPTS = 3

/** A server that others use is often started again at once, and must find its directory free. */
const GRACE_MS = 5000

/** For URLs only: requests go to where the server is at that time. */
const BASE_URL = 'http://localhost'

/** By data directory. The only state of the module: a directory has one holder in this process. */
const hosts = new Map<string, SharedHost>()

/** Starts nothing before the first request. Each caller must `release` it once. */
export function acquireHost(dataDir: string): SharedHost {
  const path = resolve(dataDir)
  let host = hosts.get(path)
  if (!host) hosts.set(path, (host = new SharedHost(path)))
  host.acquire()
  return host
}

export class SharedHost {
  readonly baseUrl = BASE_URL
  readonly callbackHooks = new CallbackHooks()
  /** Calls of client tools that this process executes: two queries of one session execute each call once. */
  readonly executing = new Set<string>()
  /** Further files with secrets, which agents cannot read. Set it before the first request. */
  secretFiles: readonly string[] = []
  /** Whether a server was in another program that only queries: it ends with them, whatever others do there. */
  wasInProgram = false
  /** Whether `createServer()` of this process holds the directory. */
  hasServer = false
  readonly #dataDir: string
  #users = 0
  #current: Promise<LocalServer> | undefined
  /** The servers of processes that ended. */
  #lost: LocalServer[] = []
  #closing: Promise<void> = Promise.resolve()
  /** Aborts when nobody waits for a connection any more. */
  #unused = new AbortController()

  constructor(dataDir: string) {
    this.#dataDir = dataDir
  }

  acquire(): void {
    this.#users++
  }

  /** Resolves when the server is closed, if this was the last user and the server is in this process. */
  async release(): Promise<void> {
    if (--this.#users > 0) return
    const servers = [...this.#lost, ...(this.#current ? [this.#current] : [])]
    this.#lost = []
    this.#current = undefined
    this.#unused.abort()
    this.#unused = new AbortController()
    const before = this.#closing
    this.#closing = before.then(() => closeAll(servers))
    await this.#closing
  }

  /** Throws if the directory cannot be used. The signal ends only this wait. */
  async server(signal?: AbortSignal): Promise<LocalServer> {
    const connecting = (this.#current ??= this.#connect())
    return await (signal ? orAborted(connecting, signal) : connecting)
  }

  readonly fetch: typeof globalThis.fetch = async (input, init) => {
    const path = (input instanceof Request ? input.url : input.toString()).slice(BASE_URL.length)
    for (let attempt = 1; ; attempt++) {
      const server = await this.server(init?.signal ?? undefined)
      try {
        const response = await server.fetch(server.baseUrl + path, {
          ...init,
          headers: { ...Object.fromEntries(new Headers(init?.headers)), authorization: `Bearer ${server.credential}` },
        })
        // Another server has taken its place, with another credential.
        if (response.status !== 401 || server.isOwn || attempt === MAX_ATTEMPTS) return response
        await response.body?.cancel()
        this.#forget(server)
      } catch (error) {
        if (server.isOwn || init?.signal?.aborted) throw error
        this.#forget(server)
        if (!wasNotSent(error) || attempt === MAX_ATTEMPTS) throw error
      }
    }
  }

  async #connect(): Promise<LocalServer> {
    const { signal } = this.#unused
    const graceMs = this.#lost.at(-1)?.isPublic ? GRACE_MS : 0
    const connecting = this.#closing.then(() =>
      connectOrStart(this.#dataDir, {
        callbackHooksOf: this.callbackHooks.of,
        secretFiles: this.secretFiles,
        graceMs,
        signal,
      }),
    )
    try {
      const server = await connecting
      this.wasInProgram ||= !server.isOwn && !server.isPublic
      return server
    } catch (error) {
      if (!signal.aborted) this.#current = undefined
      throw error
    }
  }

  /** Another request may have done so already. Its other requests continue. */
  #forget(server: LocalServer): void {
    if (this.#lost.includes(server)) return
    this.#lost.push(server)
    this.#current = undefined
  }
}

async function closeAll(servers: readonly (LocalServer | Promise<LocalServer>)[]): Promise<void> {
  await Promise.all(
    servers.map(async (each) => {
      const server = await Promise.resolve(each).catch(() => undefined) // it did not start: reported to who asked
      await server?.[Symbol.asyncDispose]()
    }),
  )
}

/** Nobody listens there any more. */
function wasNotSent(error: unknown): boolean {
  const inner = error instanceof Error ? (error.cause ?? error) : undefined
  return inner instanceof Error && 'code' in inner && ['ECONNREFUSED', 'ENOENT'].includes(String(inner.code))
}
