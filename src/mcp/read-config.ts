/** Turns the forms in which clients configure MCP servers into the stored one, and splits off the credentials in it. */
import type { McpInput, McpServer, McpServerInput, McpServers, RemoteInput } from '../contract/mcp/mcp-server.ts'
import { isServerName, MAX_MCP_SERVERS } from '../contract/mcp/mcp-server.ts'
import { MASK } from '../contract/llm-config.ts'
import { Problem } from '../contract/problem.ts'
import { withoutUndefined } from '../lib/without-undefined.ts'
import { addressOf, namesSecrets, placeOf } from './named-secrets.ts'

/** `credentials` by their place. */
export type ReadMcp = { readonly servers: McpServers; readonly credentials: Readonly<Record<string, string>> }

/**
 * A masked credential keeps the one of the server of the same name and address in `former`. Throws a `Problem` that names
 * the field.
 */
export function readMcp(input: McpInput, former: McpServers = {}): ReadMcp {
  const named = new Map<string, McpServer>()
  const add = (field: string, name: string, server: McpServer) => {
    if (!isServerName(name)) throw new Problem('invalid_request', `${field}: this is not a name of a server.`)
    if (named.has(name)) throw new Problem('invalid_request', `${field}: two servers have this name.`)
    named.set(name, server)
  }
  for (const [name, server] of Object.entries(input.mcpServers ?? {}))
    if (!server.disabled) add(`mcp.mcpServers.${name}`, name, fromNamed(server))
  input.stdio_servers?.forEach(({ name, ...server }, at) =>
    add(`mcp.stdio_servers.${at}.name`, name, { transport: 'stdio', ...server }),
  )
  addRemote('shttp_servers', 'http', input.shttp_servers, add, named)
  addRemote('sse_servers', 'sse', input.sse_servers, add, named)
  if (named.size > MAX_MCP_SERVERS)
    throw new Problem('invalid_request', `mcp: a conversation has at most ${MAX_MCP_SERVERS} servers.`)
  return splitCredentials(Object.fromEntries(named), former)
}

function fromNamed({ type, ...given }: McpServerInput): McpServer {
  const { disabled: _, ...server } = given
  const transport = server.command !== undefined ? 'stdio' : type === 'sse' ? 'sse' : 'http'
  return { transport, ...server }
}

type Add = (field: string, name: string, server: McpServer) => void

function addRemote(
  list: 'shttp_servers' | 'sse_servers',
  transport: 'http' | 'sse',
  servers: readonly RemoteInput[] | undefined,
  add: Add,
  named: ReadonlyMap<string, unknown>,
): void {
  servers?.forEach((given, at) => {
    const { name, api_key, ...server } = given
    if (!/^https?:$/.test(URL.parse(server.url)?.protocol ?? ''))
      throw new Problem('invalid_request', `mcp.${list}.${at}.url must be an http or https URL.`)
    const headers = api_key === undefined ? server.headers : { ...server.headers, Authorization: `Bearer ${api_key}` }
    add(
      `mcp.${list}.${at}.name`,
      name ?? nameFrom(server.url, named),
      withoutUndefined({ transport, ...server, headers }),
    )
  })
}

/** From the host, so that the names of tools say where they come from. */
function nameFrom(url: string, taken: ReadonlyMap<string, unknown>): string {
  const host = (URL.parse(url)?.hostname ?? '').replaceAll(/[^A-Za-z0-9]+/g, '-').replaceAll(/^-|-$/g, '')
  const base = (host || 'server').slice(0, 28)
  for (let number = 1; ; number++) {
    const name = number === 1 ? base : `${base}-${number}`
    if (!taken.has(name)) return name
  }
}

const SECRET_NAME = /key|token|secret|passw|auth|credential|private|cookie/i

/** Ordinary headers: their values are shown. */
const PLAIN_HEADER = /^(accept|accept-.*|content-.*|user-agent|.*-version)$/i

function splitCredentials(servers: Record<string, McpServer>, former: McpServers): ReadMcp {
  const credentials: Record<string, string> = {}
  const shown = Object.entries(servers).map(([name, server]) => {
    const before = formerOf(former, name, server)
    const mask = (field: 'env' | 'headers', isSecret: (name: string) => boolean) => {
      const entries = Object.entries(server[field] ?? {}).map(([key, value]) => {
        if (value === MASK && before?.[field]?.[key] === MASK) return [key, MASK] as const
        if (value === MASK)
          throw new Problem('invalid_request', `mcp: ${field} of ${name} has a masked value; send the value itself.`)
        if (!isSecret(key) || namesSecrets(value) || value === '') return [key, value] as const
        credentials[placeOf(name, server, field, key)] = value
        return [key, MASK] as const
      })
      return server[field] && { [field]: Object.fromEntries(entries) }
    }
    const env = mask('env', (key) => SECRET_NAME.test(key))
    const headers = mask('headers', (key) => !PLAIN_HEADER.test(key))
    const secret = server.oauth?.client_secret
    const isKept = secret === MASK && before?.oauth?.client_secret === MASK
    if (secret === MASK && !isKept)
      throw new Problem('invalid_request', `mcp: oauth of ${name} has a masked value; send the value itself.`)
    const isWritten = secret !== undefined && !isKept && !namesSecrets(secret)
    if (isWritten) credentials[placeOf(name, server, 'oauth', 'client_secret')] = secret
    const oauth = isWritten && { oauth: { ...server.oauth, client_secret: MASK } }
    return [name, { ...server, ...env, ...headers, ...oauth }] as const
  })
  return { servers: Object.fromEntries(shown), credentials }
}

/** The server that its credentials are for, too. */
function formerOf(former: McpServers, name: string, server: McpServer): McpServer | undefined {
  const before = Object.hasOwn(former, name) ? former[name] : undefined
  return before && addressOf(before) === addressOf(server) ? before : undefined
}
