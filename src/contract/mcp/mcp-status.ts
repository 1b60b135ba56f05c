/** What clients see of the MCP servers of a conversation. */
import { z } from 'zod'

export const McpStatus = z
  .enum(['pending', 'connecting', 'connected', 'failed', 'needs_auth'])
  .describe(
    '`pending`: not started yet, as it starts with the first run. `failed`: it is tried again with backoff. `needs_auth`: the user has to authorize it at `authorization_url`.',
  )
  .meta({ id: 'McpStatus' })
export type McpStatus = z.infer<typeof McpStatus>

export const AuthorizationUrl = z
  .string()
  .describe('The page where the user authorizes the server: valid once, for 10 minutes.')

export const McpServerView = z
  .object({
    name: z.string(),
    transport: z.enum(['stdio', 'http', 'sse']),
    status: McpStatus,
    error: z.string().optional().describe('Why it is not connected.'),
    authorization_url: AuthorizationUrl.optional(),
    server: z.string().optional().describe('What the server calls itself, with its version.'),
    tools: z.array(z.string()).describe('Names of its tools as the agent calls them.'),
    left_out: z.array(z.string()).optional().describe('Tools of the server that are not offered, and why.'),
  })
  .meta({ id: 'McpServerView' })
export type McpServerView = z.infer<typeof McpServerView>

export const McpServerList = z.object({ items: z.array(McpServerView) }).meta({
  id: 'McpServerList',
  examples: [
    {
      items: [
        {
          name: 'files',
          transport: 'stdio',
          status: 'connected',
          server: 'files 1.0.0',
          tools: ['mcp__files__read_file'],
        },
      ],
    },
  ],
})
export type McpServerList = z.infer<typeof McpServerList>
