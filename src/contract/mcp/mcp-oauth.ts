/** OAuth for MCP servers on the wire: how a server is authorized, and what its authorization server sends back. */
import { z } from 'zod'

const Short = z.string().min(1).max(2048)

export const McpOauth = z
  .strictObject({
    grant: z
      .enum(['authorization_code', 'client_credentials'])
      .optional()
      .describe(
        '`authorization_code`: a user authorizes in a browser. `client_credentials`: the client itself is authorized. Default: `authorization_code`.',
      ),
    client_id: Short.optional().describe('Default: the client is registered dynamically.'),
    client_secret: Short.optional().describe('Name a secret of the conversation, as in `${CLIENT_SECRET}`.'),
    scope: Short.optional().describe('Scopes, separated by spaces, if neither the server nor its metadata names any.'),
    issuer: Short.optional().describe(
      'The authorization server that the client belongs to: no other one gets its secret. Default: the first one that the MCP server names.',
    ),
  })
  .check(({ value, issues }) => {
    const { grant, client_id, client_secret } = value
    const add = (field: string, message: string) =>
      issues.push({ code: 'custom', input: undefined, path: [field], message })
    if (client_id === undefined && client_secret !== undefined) add('client_id', 'is needed with a client_secret')
    if (grant === 'client_credentials' && client_id === undefined) add('client_id', 'is needed for client_credentials')
    if (grant === 'client_credentials' && client_secret === undefined)
      add('client_secret', 'is needed for client_credentials')
  })
  .describe('How a server that asks for OAuth is authorized. Not used if `headers` has `Authorization`.')
  .meta({ id: 'McpOauth' })
export type McpOauth = z.infer<typeof McpOauth>

/** What the browser of the user was sent back with. */
export const AuthorizeMcpServer = z
  .strictObject({
    code: z.string().min(1).max(8192),
    state: z.string().min(1).max(512),
    iss: z.string().max(2048).optional().describe('As the authorization server sent it; needed if it sent one.'),
  })
  .meta({
    id: 'AuthorizeMcpServer',
    examples: [{ code: 'SplxlOBeZQQYbYS6WxSbIA', state: 'q3Jb1nYw0TzXkP9dR7sLmA2uVhC5eGfI' }],
  })
export type AuthorizeMcpServer = z.infer<typeof AuthorizeMcpServer>

/** The path that browsers are sent back to. */
export const OAUTH_CALLBACK = '/mcp/oauth/callback'
