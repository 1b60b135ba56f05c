/** Opens the transport of a server: a program in the sandbox, Streamable HTTP, or the older SSE. */
import type { Transport } from '@modelcontextprotocol/client'
import type { McpServer } from '../../contract/mcp/mcp-server.ts'
import type { UrlFetch } from '../../security/guarded-fetch.ts'
import type { Shells } from '../../shell/shell.ts'
import type { Sdk } from '../load-sdk.ts'
import { boundedFetch } from './bounded-fetch.ts'
import { ProgramTransport } from './program-transport.ts'

export type TransportDeps = {
  readonly startProgram: Shells['startProgram']
  readonly fetch: UrlFetch
  /** Why the network policy does not permit the address, as a clause. Can wait for a user. */
  readonly refusal: (url: URL, signal: AbortSignal) => Promise<string | undefined>
}

/** `complaint` says why a connection failed, as far as the transport knows. */
export type OpenTransport = { readonly transport: Transport; readonly complaint: () => string | undefined }

/** `server` with the values of its secrets. Rejects if the program cannot be started. */
export async function openTransport(
  sdk: Sdk,
  name: string,
  server: McpServer,
  deps: TransportDeps,
  signal: AbortSignal,
): Promise<OpenTransport> {
  if (server.transport === 'stdio') return await openProgram(name, server, deps)
  const permit = async (url: URL) => {
    const refusal = await deps.refusal(url, signal)
    if (refusal !== undefined) throw new Error(`The network policy does not permit ${url.host}: ${refusal}`)
  }
  const url = new URL(server.url ?? '')
  const options = { fetch: boundedFetch(deps.fetch, permit), requestInit: { headers: server.headers ?? {} } }
  const transport =
    server.transport === 'sse'
      ? new sdk.SSEClientTransport(url, options)
      : new sdk.StreamableHTTPClientTransport(url, options)
  return { transport, complaint: () => undefined }
}

async function openProgram(name: string, server: McpServer, deps: TransportDeps): Promise<OpenTransport> {
  const { command = '', args = [], env = {} } = server
  const program = await deps.startProgram({ name, argv: [command, ...args], env })
  const transport = new ProgramTransport(program)
  return {
    transport,
    complaint: () =>
      [transport.fault, program.complaint && `its last output: ${program.complaint}`].filter(Boolean).join('; ') ||
      undefined,
  }
}
