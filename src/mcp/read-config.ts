/** Turns the forms in which clients configure MCP servers into the stored one, and splits off the credentials in it. */
import type { McpInput, McpServer, McpServerInput, McpServers, RemoteInput } from '../contract/mcp/mcp-server.ts'
import { isServerName, MAX_MCP_SERVERS } from '../contract/mcp/mcp-server.ts'
import { MASK } from '../contract/values/llm-config.ts'
import { Problem } from '../contract/problem.ts'
import { withoutUndefined } from '../lib/without-undefined.ts'
import type { CredentialField } from './named-secrets.ts'
import { namesSecrets, placeOf } from './named-secrets.ts'

/** `credentials` by their place. */
export type ReadMcp = { readonly servers: McpServers; readonly credentials: Readonly<Record<string, string>> }

/**
 * A masked credential keeps the one of the server of the same name in `former`, if the same receiver gets it. Throws a
 * `Problem` that names the field.
 */
export function readMcp(input: McpInput, former: McpServers = {}): ReadMcp {
  const namedServers = new Map<string, McpServer>()
  const add = (field: string, name: string, server: McpServer) => {
    if (!isServerName(name)) throw new Problem('invalid_request', `${field}: this is not a name of a server.`)
    if (namedServers.has(name)) throw new Problem('invalid_request', `${field}: two servers have this name.`)
    namedServers.set(name, server)
  }
  for (const [name, server] of Object.entries(input.mcpServers ?? {}))
    if (!server.disabled) add(`mcp.mcpServers.${name}`, name, fromNamed(server))
  input.stdio_servers?.forEach(({ name, ...server }, at) =>
    add(`mcp.stdio_servers.${at}.name`, name, { transport: 'stdio', ...server }),
  )
  addRemote('shttp_servers', 'http', input.shttp_servers, add, namedServers)
  addRemote('sse_servers', 'sse', input.sse_servers, add, namedServers)
  if (namedServers.size > MAX_MCP_SERVERS)
    throw new Problem('invalid_request', `mcp: a conversation has at most ${MAX_MCP_SERVERS} servers.`)
  return splitCredentials(Object.fromEntries(namedServers), former)
}

function fromNamed({ type, ...serverInput }: McpServerInput): McpServer {
  const { disabled: _, ...server } = serverInput
  const transport = server.command !== undefined ? 'stdio' : type === 'sse' ? 'sse' : 'http'
  return { transport, ...server }
}

type Add = (field: string, name: string, server: McpServer) => void

function addRemote(
  list: 'shttp_servers' | 'sse_servers',
  transport: 'http' | 'sse',
  servers: readonly RemoteInput[] | undefined,
  add: Add,
  namedServers: ReadonlyMap<string, unknown>,
): void {
  servers?.forEach((entry, at) => {
    const { name, api_key, ...server } = entry
    if (!/^https?:$/.test(URL.parse(server.url)?.protocol ?? ''))
      throw new Problem('invalid_request', `mcp.${list}.${at}.url must be an http or https URL.`)
    const headers = api_key === undefined ? server.headers : { ...server.headers, Authorization: `Bearer ${api_key}` }
    add(
      `mcp.${list}.${at}.name`,
      name ?? nameFrom(server.url, namedServers),
      withoutUndefined({ transport, ...server, headers }),
    )
  })
}

/** Takes the host, so that the names of tools say where they come from. */
function nameFrom(url: string, takenNames: ReadonlyMap<string, unknown>): string {
  const host = (URL.parse(url)?.hostname ?? '').replaceAll(/[^A-Za-z0-9]+/g, '-').replaceAll(/^-|-$/g, '')
  const base = (host || 'server').slice(0, 28)
  for (let number = 1; ; number++) {
    const name = number === 1 ? base : `${base}-${number}`
    if (!takenNames.has(name)) return name
  }
}

const SECRET_NAME = /key|token|secret|passw|auth|credential|private|cookie/i

/** Ordinary headers: their values are shown. */
const PLAIN_HEADER = /^(accept|accept-.*|content-.*|user-agent|.*-version)$/i

function splitCredentials(servers: Record<string, McpServer>, former: McpServers): ReadMcp {
  const credentials: Record<string, string> = {}
  const shownServers = Object.entries(servers).map(([name, server]) => {
    const maskedServer = maskCredentials(server)
    const before = Object.hasOwn(former, name) ? former[name] : undefined
    for (const [field, key, value] of credentialsIn(server)) {
      const place = placeOf(name, maskedServer, field, key)
      if (value !== MASK) credentials[place] = value
      else if (!before || valueAt(before, field, key) !== MASK || placeOf(name, before, field, key) !== place)
        throw new Problem('invalid_request', `mcp: ${field} of ${name} has a masked value; send the value itself.`)
    }
    return [name, maskedServer] as const
  })
  return { servers: Object.fromEntries(shownServers), credentials }
}

/** Returns the credentials that are written out or masked. */
const credentialsIn = ({ env, headers, oauth }: McpServer): (readonly [CredentialField, string, string])[] => [
  ...writtenIn('env', env),
  ...writtenIn('headers', headers),
  ...writtenIn('oauth', oauth?.client_secret === undefined ? {} : { client_secret: oauth.client_secret }),
]

const writtenIn = <F extends CredentialField>(field: F, values: Readonly<Record<string, string>> = {}) =>
  Object.entries(values).flatMap(([key, value]) => (isWritten(field, key, value) ? [[field, key, value] as const] : []))

function isWritten(field: CredentialField, key: string, value: string): boolean {
  if (value === MASK) return true
  const isSecret = field === 'env' ? SECRET_NAME.test(key) : field === 'oauth' || !PLAIN_HEADER.test(key)
  return isSecret && value !== '' && !namesSecrets(value)
}

function maskCredentials(server: McpServer): McpServer {
  const mask = (field: 'env' | 'headers') => {
    const entries = Object.entries(server[field] ?? {})
    const maskedEntries = entries.map(([key, value]) => [key, isWritten(field, key, value) ? MASK : value])
    return server[field] && { [field]: Object.fromEntries(maskedEntries) }
  }
  const { oauth } = server
  const secret = oauth?.client_secret
  const isMasked = secret !== undefined && isWritten('oauth', 'client_secret', secret)
  return {
    ...server,
    ...mask('env'),
    ...mask('headers'),
    ...(isMasked && { oauth: { ...oauth, client_secret: MASK } }),
  }
}

const valueAt = (server: McpServer, field: CredentialField, key: string): string | undefined =>
  field === 'oauth' ? server.oauth?.client_secret : server[field]?.[key]
