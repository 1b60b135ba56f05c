/** The configuration of MCP servers on the wire: the forms that clients send, and the one that is stored and shown. */
import { z } from 'zod'
import { hasUserInfo } from '../values/http-header.ts'
import { isVariableName } from '../values/environment-variables.ts'
import { McpOauth } from './mcp-oauth.ts'

export const MAX_MCP_SERVERS = 32
const MAX_NAME_CHARS = 32
const MAX_TIMEOUT_S = 24 * 60 * 60

/** Two underscores separate the server from its tool in the name of a tool. */
const SERVER_NAME = /^[A-Za-z0-9-]+(_[A-Za-z0-9-]+){0,31}$/

export const isServerName = (name: string): boolean => name.length <= MAX_NAME_CHARS && SERVER_NAME.test(name)

const NAME_RULE = `must have 1 to ${MAX_NAME_CHARS} letters, digits, "-" or single "_"`

const TRANSPORTS = ['stdio', 'http', 'sse'] as const

const Text = z.string().min(1).max(8192)
const NamedTexts = z.record(z.string().min(1).max(200), z.string().max(32 * 1024))
const ToolNames = z.array(z.string().min(1).max(200)).max(1000)

/** How the server treats the tools of an MCP server; the same for each transport. */
const Common = {
  timeout: z.number().positive().max(MAX_TIMEOUT_S).optional().describe('Seconds that a call may take. Default: 300.'),
  allowed_tools: ToolNames.optional().describe(
    'The tools that are offered, by their names on the MCP server. Default: all.',
  ),
  disallowed_tools: ToolNames.optional().describe('Tools that are not offered.'),
  require_approval: z
    .boolean()
    .optional()
    .describe('Whether its calls need a decision in each permission mode. Default: false.'),
  require_approval_for: ToolNames.optional().describe('The same for these tools only.'),
}

const command = Text.describe('The program, found by PATH in the sandbox.')
const args = z.array(z.string().max(8192)).max(200).describe('Its arguments.')
const env = NamedTexts.check(({ value, issues }) => {
  // The message names the position: a name may be a secret in the wrong place.
  Object.entries(value).forEach(([name, text], at) => {
    const fault = !isVariableName(name) ? VARIABLE_RULE : text.includes('\0') ? NO_NUL : undefined
    if (fault !== undefined)
      issues.push({ code: 'custom', input: undefined, path: [], message: `entry ${at + 1}: ${fault}` })
  })
}).describe(
  'Its environment variables, in addition to those of the shells. Secrets of the conversation are not among them: name them, as in `${GITHUB_TOKEN}`.',
)
const url = Text.describe('Its address: http or https.')
const VARIABLE_RULE = 'a name must be a letter or "_", then letters, digits and "_"'
const NO_NUL = 'a value must not contain a NUL character'

/** The transport sets these, or they would make another request of it. */
const RESERVED_HEADER =
  /^(host|connection|keep-alive|te|trailer|upgrade|expect|content-length|transfer-encoding|mcp-session-id|last-event-id)$/i
const isHeaderName = (name: string): boolean => /^[!#$%&'*+.^_`|~\w-]+$/.test(name) && !RESERVED_HEADER.test(name)

const headers = NamedTexts.check(({ value, issues }) => {
  // The message names the position: a name may be a secret in the wrong place.
  const at = Object.keys(value).findIndex((name) => !isHeaderName(name))
  if (at >= 0)
    issues.push({ code: 'custom', input: undefined, path: [], message: `the name of entry ${at + 1} cannot be set` })
}).describe('Headers of each request. Name secrets of the conversation, as in `Bearer ${TOKEN}`.')

/** One server of `.mcp.json`. `type` is not needed for a command. */
export const McpServerInput = z
  .strictObject({
    type: z
      .enum([...TRANSPORTS, 'streamable-http', 'streamableHttp'])
      .optional()
      .describe('Default: `stdio` with a `command`, `http` (Streamable HTTP) with a `url`.'),
    command: command.optional(),
    args: args.optional(),
    env: env.optional(),
    url: url.optional(),
    headers: headers.optional(),
    oauth: McpOauth.optional(),
    disabled: z.boolean().optional().describe('Leaves the server out.'),
    ...Common,
  })
  .check(({ value, issues }) => {
    for (const [field, message] of faultsOf(value))
      issues.push({ code: 'custom', input: undefined, path: [field], message })
  })
  .meta({ id: 'McpServerInput' })
export type McpServerInput = z.infer<typeof McpServerInput>

type Fields = { readonly [K in 'type' | 'command' | 'args' | 'env' | 'url' | 'headers' | 'oauth']?: unknown }

function faultsOf({ type, command: program, url: address, ...rest }: Fields): [string, string][] {
  if (program === undefined && address === undefined)
    return [[type === undefined || type === 'stdio' ? 'command' : 'url', 'is missing; a server has a command or a url']]
  if (program !== undefined && address !== undefined) return [['url', 'does not go with a command']]
  const isProgram = program !== undefined
  if (type !== undefined && isProgram !== (type === 'stdio'))
    return [['type', isProgram ? 'must be stdio for a command' : 'must be http or sse for a url']]
  const others = isProgram ? (['headers', 'oauth'] as const) : (['args', 'env'] as const)
  const wrong = others.find((field) => rest[field] !== undefined)
  if (wrong) return [[wrong, isProgram ? 'goes with a url only' : 'goes with a command only']]
  if (typeof address === 'string' && !isAddress(address))
    return [['url', 'must be an http or https URL without credentials']]
  return []
}

/** Secrets in it are named, and their values are not known yet. */
function isAddress(text: string): boolean {
  const address = URL.parse(text)
  return address !== null && /^https?:$/.test(address.protocol) && !hasUserInfo(text)
}

const remote = {
  name: z.string().optional().describe('Default: from the host of its url.'),
  api_key: z
    .string()
    .min(1)
    .max(32 * 1024)
    .optional()
    .describe('Sent as `Authorization: Bearer`. Stored encrypted.'),
}

const RemoteInput = z.strictObject({
  ...remote,
  url,
  headers: headers.optional(),
  oauth: McpOauth.optional(),
  ...Common,
})
const StdioInput = z.strictObject({ name: z.string(), command, args: args.optional(), env: env.optional(), ...Common })

const ServersByName = z
  .record(z.string(), McpServerInput)
  .check(({ value, issues }) => {
    // The message names the position: a name may be a secret in the wrong place.
    const at = Object.keys(value).findIndex((name) => !isServerName(name))
    if (at >= 0)
      issues.push({ code: 'custom', input: undefined, path: [], message: `the name of entry ${at + 1} ${NAME_RULE}` })
  })
  .describe('Servers by name, as in `.mcp.json`.')

const serverList = <T extends z.ZodType>(server: T) => z.array(server).max(MAX_MCP_SERVERS)

export const McpInput = z
  .strictObject({
    mcpServers: ServersByName.optional(),
    stdio_servers: serverList(StdioInput).optional().describe('Programs, in the form of OpenHands.'),
    shttp_servers: serverList(RemoteInput)
      .optional()
      .describe('Servers with Streamable HTTP, in the form of OpenHands.'),
    sse_servers: serverList(RemoteInput)
      .optional()
      .describe('Servers with the older SSE transport, in the form of OpenHands.'),
  })
  .meta({
    id: 'McpInput',
    examples: [
      {
        mcpServers: {
          files: { command: 'npx', args: ['-y', '@modelcontextprotocol/server-filesystem', '.'] },
          issues: {
            type: 'http',
            url: 'https://mcp.example.com/mcp',
            headers: { Authorization: 'Bearer ${ISSUES_TOKEN}' },
          },
        },
      },
    ],
  })
export type McpInput = z.infer<typeof McpInput>
export type RemoteInput = z.infer<typeof RemoteInput>

/** The server as it is stored: credentials are masked. */
export const McpServer = z
  .object({
    transport: z.enum(TRANSPORTS),
    command: z.string().optional(),
    args: z.array(z.string()).optional(),
    env: z.record(z.string(), z.string()).optional(),
    url: z.string().optional(),
    headers: z.record(z.string(), z.string()).optional(),
    oauth: McpOauth.optional(),
    ...Common,
  })
  .meta({ id: 'McpServer' })
export type McpServer = z.infer<typeof McpServer>

export const McpServers = z.record(z.string(), McpServer).meta({ id: 'McpServers' })
export type McpServers = z.infer<typeof McpServers>

/** The servers as they are shown, in the form in which they can be sent back. */
export const ShownMcp = z
  .object({
    mcpServers: z.record(z.string(), McpServer.omit({ transport: true }).extend({ type: z.enum(TRANSPORTS) })),
  })
  .meta({ id: 'Mcp' })
export type ShownMcp = z.infer<typeof ShownMcp>
