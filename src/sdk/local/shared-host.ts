/**
 * The server of a data directory, shared by all queries of this process: one of them starts it or connects to it, and the
 * last one closes it. If another process runs it, it is lost when that process ends.
 */
import { resolve } from 'node:path'
import { orAborted } from '../../lib/bounded-wait.ts'
import type { ConnectOptions, LocalServer } from './connect-or-start.ts'
import { connectOrStart } from './connect-or-start.ts'
import { CallbackHooks } from '../hooks/callback-hooks.ts'
import { serverLost } from '../errors/server-lost.ts'

/** The base of URLs only: requests go to where the server is. */
export const BASE_URL = 'http://localhost'

/** The hosts by data directory. The only state of the module: a directory has one holder in this process. */
const hosts = new Map<string, SharedHost>()

/** Starts nothing before the first request. Each caller must `release` it once. The options are those of the first one. */
export function acquireHost(dataDir: string, options: HostOptions = {}): SharedHost {
  const path = resolve(dataDir)
  let host = hosts.get(path)
  if (!host) hosts.set(path, (host = new SharedHost(path, options)))
  host.acquire()
  return host
}

type HostOptions = Pick<ConnectOptions, 'secretFiles' | 'settings'>

export class SharedHost {
  readonly callbackHooks = new CallbackHooks()
  /** Calls of client tools that this process executes: two queries of one session execute each call once. */
  readonly executing = new Set<string>()
  /** Whether `createServer()` of this process holds the directory. */
  hasServer = false
  readonly #dataDir: string
  readonly #options: HostOptions
  #users = 0
  #current: Promise<LocalServer> | undefined
  #isLost = false
  #closing: Promise<void> = Promise.resolve()
  /** Aborts when nobody waits for a connection any more. */
  #unused = new AbortController()

  constructor(dataDir: string, options: HostOptions) {
    this.#dataDir = dataDir
    this.#options = options
  }

  acquire(): void {
    this.#users++
  }

  /** Resolves when the server is closed, if this was the last user and the server is in this process. */
  async release(): Promise<void> {
    if (--this.#users > 0) return
    const server = this.#current
    this.#current = undefined
    this.#unused.abort()
    this.#unused = new AbortController()
    const before = this.#closing
    this.#closing = before.then(() => close(server))
    await this.#closing
  }

  /** Throws if the directory cannot be used. The signal ends only this wait. */
  async server(signal?: AbortSignal): Promise<LocalServer> {
    const connecting = (this.#current ??= this.#connect())
    return await (signal ? orAborted(connecting, signal) : connecting)
  }

  /** Throws `server_lost` if the process of the server has ended: the request was not executed. */
  readonly fetch: typeof globalThis.fetch = async (input, init) => {
    if (this.#isLost) throw serverLost()
    const path = (input instanceof Request ? input.url : input.toString()).slice(BASE_URL.length)
    const server = await this.server(init?.signal ?? undefined)
    try {
      const response = await server.fetch(server.baseUrl + path, {
        ...init,
        headers: { ...Object.fromEntries(new Headers(init?.headers)), authorization: `Bearer ${server.credential}` },
      })
      // Another server has taken its place, with another credential.
      if (response.status !== 401 || server.isOwn) return response
      await response.body?.cancel()
    } catch (error) {
      if (server.isOwn || !wasRefused(error)) throw error
    }
    throw this.#lose()
  }

  async #connect(): Promise<LocalServer> {
    const { signal } = this.#unused
    try {
      await this.#closing
      return await connectOrStart(this.#dataDir, { ...this.#options, callbackHooksOf: this.callbackHooks.of, signal })
    } catch (error) {
      if (!signal.aborted) this.#current = undefined
      throw error
    }
  }

  /** New queries connect again. Those that used it fail, because their runs were cut off. */
  #lose(): Error {
    this.#isLost = true
    if (hosts.get(this.#dataDir) === this) hosts.delete(this.#dataDir)
    return serverLost()
  }
}

async function close(server: Promise<LocalServer> | undefined): Promise<void> {
  const startedServer = await server?.catch(() => undefined) // it did not start: reported to who asked
  await startedServer?.[Symbol.asyncDispose]()
}

/** Nobody listens there any more. */
function wasRefused(error: unknown): boolean {
  const inner = error instanceof Error ? (error.cause ?? error) : undefined
  return inner instanceof Error && 'code' in inner && ['ECONNREFUSED', 'ENOENT'].includes(String(inner.code))
}
