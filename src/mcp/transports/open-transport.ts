/** Opens the transport of a server: a program in the sandbox, or a URL. */
import type { OAuthClientProvider, Transport } from '@modelcontextprotocol/client'
import type { McpServer } from '../../contract/mcp/mcp-server.ts'
import type { UrlFetch } from '../../security/guarded-fetch.ts'
import type { Shells } from '../../shell/shell.ts'
import type { Sdk } from '../load-sdk.ts'
import type { ShowText } from '../tools/shown-text.ts'
import { HttpTransport } from './http-transport.ts'
import { ProgramTransport } from './program-transport.ts'

/** Shown of what a program wrote to its standard error. */
const MAX_LAST_OUTPUT_CHARS = 800

export type TransportDeps = {
  readonly startProgram: Shells['startProgram']
  readonly fetch: UrlFetch
  /** Returns why the network policy does not permit the address, as a clause. Can wait for a user. */
  readonly refusal: (url: URL, signal: AbortSignal) => Promise<string | undefined>
  readonly show: ShowText
}

/** `complaint` says why a connection failed, as far as the transport knows. */
export type OpenTransport = { readonly transport: Transport; readonly complaint: () => string | undefined }

/** `server` with the values of its secrets. Rejects if the program cannot be started. */
export async function openTransport(
  sdk: Sdk,
  name: string,
  server: McpServer,
  deps: TransportDeps,
  { signal, provider }: Opening,
): Promise<OpenTransport> {
  if (server.transport === 'stdio') return await openProgram(name, server, deps)
  const transport = openHttp(sdk, { server, deps, signal, provider })
  return { transport, complaint: () => transport.fault }
}

type Opening = { readonly signal: AbortSignal; readonly provider: OAuthClientProvider | undefined }

/** Opens a server with a URL. */
export function openHttp(
  sdk: Sdk,
  { server, deps, signal, provider }: Opening & { readonly server: McpServer; readonly deps: TransportDeps },
): HttpTransport {
  const permit = async (url: URL) => {
    const refusal = await deps.refusal(url, signal)
    if (refusal !== undefined) throw new Error(`The network policy does not permit ${url.host}: ${refusal}`)
  }
  return new HttpTransport(sdk, { server, fetch: deps.fetch, permit, provider, signal, show: deps.show })
}

async function openProgram(
  name: string,
  server: McpServer,
  { startProgram, show }: TransportDeps,
): Promise<OpenTransport> {
  const { command = '', args = [], env: variables = {} } = server
  const program = await startProgram({ name, argv: [command, ...args], variables })
  const transport = new ProgramTransport(program)
  const lastOutput = () =>
    program.complaint && `its last output: ${show(program.complaint, MAX_LAST_OUTPUT_CHARS, 'end')}`
  return { transport, complaint: () => [transport.fault, lastOutput()].filter(Boolean).join('; ') || undefined }
}
