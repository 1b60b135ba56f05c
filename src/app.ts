/** The composition root: listens, opens what the server stands on, and builds the server on it. */
import { makeCredential } from './access/credential.ts'
import type { Config } from './config/config.ts'
import type { CallbacksOf } from './hooks/select-hooks.ts'
import type { Listening } from './http/listen.ts'
import { listenOn } from './http/listen.ts'
import type { Sharing } from './storage/postgres/incarnation.ts'
import { loadServer } from './wiring/load-server.ts'
import { startServices } from './wiring/services.ts'
import type { App } from './wiring/start-server.ts'

export type StartOptions = {
  /** Listen for programs of the same user only. */
  readonly isLocal?: boolean
  /**
   * The server that listens already; by default it begins to listen when it is about to serve. It is closed with the
   * server.
   */
  readonly listening?: Listening
  /** Whether other instances may use its database at the same time; `alone` by default. */
  readonly sharing?: Sharing
  /** Hooks that are functions of the program that this server is part of. */
  readonly callbackHooksOf?: CallbacksOf | undefined
}

/**
 * Resolves when the server listens, and continues to start in the background: see `ready`. Closes everything that was
 * started if a later step fails.
 */
export async function startApp(config: Config, options: StartOptions = {}): Promise<App> {
  const localCredential = makeCredential('asl_')
  const startedParts = new AsyncDisposableStack()
  const { isLocal = false, callbackHooksOf } = options
  let { listening } = options
  const listen = async () => (isLocal ? undefined : (listening ??= await listenOn(config)))
  try {
    const [services, { startServer }] = await Promise.all([
      startServices(config, localCredential, startedParts, options.sharing),
      loadServer(),
    ])
    return await startServer(config, startedParts, { ...services, callbackHooksOf, isLocal }, listen)
  } catch (error) {
    await listening?.close()
    await startedParts.disposeAsync()
    throw error
  }
}
