/** The routes of the protocols besides the API, by the names that settings have for them. */
import type { FastifyPluginAsync } from 'fastify'
import { a2aRoutes } from './a2a/a2a-routes.ts'
import { acpRoutes } from './acp/acp-routes.ts'
import type { AcpDeps } from './acp/serve-acp.ts'
import { agUiRoutes } from './ag-ui/ag-ui-routes.ts'
import { aiSdkRoutes } from './ai-sdk/routes.ts'
import { mcpServerRoutes } from './mcp/mcp-routes.ts'
import type { McpDeps } from './mcp/served-agents.ts'
import { openAiRoutes } from './openai/routes.ts'

type ProtocolDeps = Parameters<typeof openAiRoutes>[1] & McpDeps & AcpDeps
type ProtocolName = 'openai' | 'ai-sdk' | 'ag-ui' | 'mcp' | 'acp' | 'a2a'

export const PROTOCOL_ROUTES: Readonly<Record<ProtocolName, FastifyPluginAsync<ProtocolDeps>>> = {
  openai: openAiRoutes,
  'ai-sdk': aiSdkRoutes,
  'ag-ui': agUiRoutes,
  mcp: mcpServerRoutes,
  acp: acpRoutes,
  a2a: a2aRoutes,
}
