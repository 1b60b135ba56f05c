/** The way to the sessions: the server of a data directory on this machine, or a server elsewhere. One client for both. */
import type { AgentServerClient } from '../../client/client.ts'
import { createClient } from '../../client/client.ts'
import { readDataDir } from '../../config/paths.ts'
import type { CallbackHooks } from '../hooks/callback-hooks.ts'
import { invalid } from '../errors/invalid.ts'
import type { SessionPlace } from '../options/query-options.ts'
import type { SharedHost } from './shared-host.ts'
import { acquireHost, BASE_URL } from './shared-host.ts'

export type ServerLink = AsyncDisposable & {
  readonly client: AgentServerClient
  /** The functions that the server calls itself, if it is in this process. Others are asked for their answers. */
  readonly callbackHooks: CallbackHooks | undefined
  /** Calls of client tools that this process executes. */
  readonly executing: Set<string>
  /** Another process of this machine runs the server. Queries fail when it ends. */
  readonly isInOther: boolean
}

/** The server in this process ends with the last link to it. Throws if the directory cannot be used. */
export async function openLink({ server, persistDir }: SessionPlace, signal?: AbortSignal): Promise<ServerLink> {
  if (server && persistDir !== undefined)
    throw invalid('persistDir is for sessions on this machine, and server for those of a server. Pass one of them.')
  return server ? remoteLink(server) : await localLink(acquireHost(dataDirOf(persistDir)), signal)
}

/** The same directory as that of `agent-server serve`. */
const dataDirOf = (persistDir: string | undefined): string =>
  readDataDir(persistDir === undefined ? {} : { OPENHANDS_DATA_DIR: persistDir })

async function localLink(host: SharedHost, signal: AbortSignal | undefined): Promise<ServerLink> {
  // Requests would repeat what cannot succeed, such as a start with settings that are not valid.
  const { isOwn } = await host.server(signal).catch(async (error: unknown) => {
    await host.release()
    throw error
  })
  const { fetch, callbackHooks, executing } = host
  let isReleased = false
  return {
    client: createClient({ baseUrl: BASE_URL, fetch }),
    executing,
    isInOther: !isOwn,
    callbackHooks: isOwn || host.hasServer ? callbackHooks : undefined,
    async [Symbol.asyncDispose]() {
      if (isReleased) return
      isReleased = true
      await host.release()
    },
  }
}

function remoteLink({ baseUrl, apiKey, fetch }: NonNullable<SessionPlace['server']>): ServerLink {
  return {
    client: createClient({ baseUrl, apiKey, fetch }),
    executing: new Set(),
    isInOther: false,
    callbackHooks: undefined,
    async [Symbol.asyncDispose]() {},
  }
}
