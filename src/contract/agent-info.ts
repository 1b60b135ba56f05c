/** The description of a conversation's agent. */
import { z } from 'zod'
import { HookPoint } from './hooks/hook-point.ts'
import { ResourceLimits } from './limits/resource-limits.ts'
import { ProjectSettings } from './project/project-settings.ts'
import { NetworkPolicy } from './values/network.ts'
import { AgentEntry } from './agents/definition.ts'
import { McpServerView } from './mcp/mcp-status.ts'

export const AgentInfo = z
  .object({
    model: z.string().describe('The configured model.'),
    provider: z.string(),
    base_url: z.string().optional().describe('URL of the endpoint, if configured.'),
    system_prompt: z.string(),
    microagents: z.array(z.string()),
    tools: z.array(
      z.object({
        name: z.string(),
        description: z.string(),
        input_schema: z.record(z.string(), z.unknown()).describe('JSON Schema of its arguments.'),
      }),
    ),
    mcp_servers: z
      .array(McpServerView)
      .describe('The tools of MCP servers are among `tools` while they are connected.'),
    agents: z.array(AgentEntry).describe('The agents that the tool `Task` has. Empty without it.'),
    confirmation_mode: z.boolean(),
    hooks: z.array(HookPoint).describe('The points that have hooks.'),
    isolation: z.enum(['bubblewrap', 'none']),
    network: NetworkPolicy.describe('The policy in force, within the ceiling of the server.'),
    workdir: z.string(),
    limits: z.object({
      max_iteration_per_run: z.int(),
      max_seconds_per_run: z.number().optional(),
    }),
    resource_limits: ResourceLimits,
    project_settings: ProjectSettings.optional().describe('Absent if the conversation has no setting_sources.'),
  })
  .meta({ id: 'AgentInfo' })
export type AgentInfo = z.infer<typeof AgentInfo>
