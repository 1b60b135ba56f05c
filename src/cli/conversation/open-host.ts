/** Opens what runs the agents: a remote server, or the agents of this machine. The only file that decides which. */
import type { AgentServerClient } from '../../client/client.ts'
import { createClient } from '../../client/client.ts'
import type { ServerSettings } from '../../config/variables.ts'
import { Info } from '../../contract/server.ts'

export type AgentHost = AsyncDisposable & {
  readonly client: AgentServerClient
  /** URL of the remote server; undefined: this machine. */
  readonly server: string | undefined
  /** Whether runs were in another process that ends with its own command, and continue here. */
  readonly continuesRuns: boolean
  /** The server of this machine is one for others: it shows no home. */
  readonly isPublic: boolean
}

export type HostOptions = {
  readonly server: string | undefined
  /** The key of the remote server. */
  readonly apiKey: string | undefined
  readonly dataDir: string
  /** Files with secrets that agents must not read. */
  readonly secretFiles?: readonly string[]
  /** The settings for the server of this machine, if it starts in this process. */
  readonly settings?: ServerSettings
  readonly signal: AbortSignal
}

/** A person waits: a server that cannot be reached is reported soon. */
const REMOTE_RETRIES = 2

/** Another service can answer with JSON, too. Other versions may have other fields. */
const IsServer = Info.pick({ name: true })

/** How long a server may take to say what it is, in milliseconds. */
const ANSWER_TIMEOUT_MS = 30_000

/** Throws an error unless the host is a server of this kind, and answers. */
export async function infoOf({ client, server }: AgentHost, signal: AbortSignal): Promise<Info> {
  const timeout = AbortSignal.timeout(ANSWER_TIMEOUT_MS)
  const info = await client.info({ signal: AbortSignal.any([signal, timeout]) }).catch((error: unknown) => {
    if (!timeout.aborted || signal.aborted) throw error
    throw new Error(`${server} does not answer. Check the URL of the server and the proxies.`, { cause: error })
  })
  if (IsServer.safeParse(info).success) return info
  throw new Error(`${server} is not an agent-server. Check the URL.`)
}

/** Throws an error that says what to do. The agents of this process end when the host is disposed. */
export async function openHost({ server, apiKey, ...local }: HostOptions): Promise<AgentHost> {
  if (server === undefined) return await openLocal(local)
  const client = createClient({ baseUrl: server, apiKey, maxRetries: REMOTE_RETRIES })
  return { client, server, continuesRuns: false, isPublic: true, [Symbol.asyncDispose]: () => Promise.resolve() }
}

/**
 * Commands that run at the same time share the agents of the first. When it ends, the requests of the others go to the next one.
 * A server for others is not replaced: it may be started again, and needs the directory.
 */
async function openLocal({ dataDir, signal, ...options }: Omit<HostOptions, 'server' | 'apiKey'>): Promise<AgentHost> {
  // Loaded here: a remote server needs none of it.
  const { acquireHost, BASE_URL } = await import('../../sdk/local/shared-host.ts')
  const { isServerLost } = await import('../../sdk/errors/server-lost.ts')
  let host = acquireHost(dataDir, options)
  const release = () => host.release()
  const { isOwn, isPublic } = await host.server(signal).catch(async (error: unknown) => {
    await release()
    throw error
  })
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const askedHost = host
    try {
      return await askedHost.fetch(input, init)
    } catch (error) {
      if (!isServerLost(error) || (await askedHost.server()).isPublic) throw error
      if (host === askedHost) {
        host = acquireHost(dataDir, options)
        await askedHost.release()
      }
      return await fetch(input, init)
    }
  }
  const client = createClient({ baseUrl: BASE_URL, fetch })
  const continuesRuns = !isOwn && !isPublic
  return { client, server: undefined, continuesRuns, isPublic, [Symbol.asyncDispose]: release }
}
