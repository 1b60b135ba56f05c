/** Opens what runs the agents: a remote server, or the agents of this machine. The only file that decides which. */
import type { AgentServerClient } from '../client/client.ts'
import { createClient } from '../client/client.ts'

export type AgentHost = AsyncDisposable & {
  readonly client: AgentServerClient
  /** URL of the remote server; undefined: this machine. */
  readonly server: string | undefined
}

export type HostOptions = {
  readonly server: string | undefined
  /** The key of the remote server. */
  readonly apiKey: string | undefined
  readonly dataDir: string
  /** Files with secrets that agents of this process must not read. */
  readonly secretFiles?: readonly string[]
  readonly signal: AbortSignal
}

/** A person waits: a server that cannot be reached is reported soon. */
const REMOTE_RETRIES = 2

/** Throws an error that says what to do. The agents of this process end when the host is disposed. */
export async function openHost({ server, apiKey, dataDir, secretFiles, signal }: HostOptions): Promise<AgentHost> {
  if (server !== undefined) {
    const client = createClient({ baseUrl: server, apiKey, maxRetries: REMOTE_RETRIES })
    return { client, server, [Symbol.asyncDispose]: () => Promise.resolve() }
  }
  // Loaded here: a remote server needs none of it.
  const { acquireHost } = await import('../sdk/local/shared-host.ts')
  const host = acquireHost(dataDir)
  host.secretFiles = secretFiles ?? []
  const release = () => host.release()
  await host.server(signal).catch(async (error: unknown) => {
    await release()
    throw error
  })
  const { baseUrl, fetch } = host
  return { client: createClient({ baseUrl, fetch }), server, [Symbol.asyncDispose]: release }
}
