/** The settings of a conversation, as its log has them. */
import { z } from 'zod'
import { Hooks } from '../contract/hooks/hooks.ts'
import type { EventOf } from '../contract/events/event.ts'
import { LlmConfig } from '../contract/llm-config.ts'
import { McpServers } from '../contract/mcp/mcp-server.ts'
import { NetworkPolicy } from '../contract/network.ts'
import { PermissionMode, PermissionRules } from '../contract/permission.ts'
import { ProjectSettings } from '../contract/project/project-settings.ts'
import { RequestedLimits } from '../contract/limits/resource-limits.ts'
import { StoredClientHooks } from '../contract/hooks/client-hooks.ts'
import { StoredClientTool } from '../contract/client-tools/client-tool.ts'
import { CompactionSettings } from '../contract/compaction/settings.ts'
import { Agents, SubagentLimits } from '../contract/agents/definition.ts'
import { ToolConfig } from '../contract/limits/tool-config.ts'

/** How a conversation was created and configured, without secret values: the `options_summary` of its `SystemInit`. */
export const Settings = z.object({
  title: z.string().optional(),
  generate_title: z.boolean().optional(),
  title_model: z.string().optional(),
  user_id: z.string().optional(),
  metadata: z.record(z.string(), z.unknown()).optional(),
  workdir: z.string(),
  /** The directory that the server created for it and deletes with it, even if it works elsewhere now. */
  made_workdir: z.string().optional(),
  llm_config: LlmConfig,
  tools: z.array(z.string()),
  max_iteration_per_run: z.int(),
  max_seconds_per_run: z.number().optional(),
  output_schema: z.record(z.string(), z.unknown()).optional(),
  max_tokens_per_run: z.int().optional(),
  max_budget_usd: z.number().optional(),
  compaction: CompactionSettings.optional(),
  microagents: z.array(z.string()).optional(),
  confirmation_mode: z.boolean().optional(),
  /** Absent: `bypass`, as nobody may be there to ask. */
  permission_mode: PermissionMode.optional(),
  permission_rules: PermissionRules.optional(),
  /** The idempotency key of the request that created it. */
  idempotency: z.object({ key: z.string(), bodyHash: z.string(), warnings: z.array(z.string()).optional() }).optional(),
  resume_on_start: z.boolean().optional(),
  limits: RequestedLimits.optional(),
  visualize: z.boolean().optional(),
  tool_config: ToolConfig.optional(),
  /** With masked secrets. */
  hooks: Hooks.optional(),
  enable_message_rewrite_hooks: z.boolean().optional(),
  /** Absent: the server's current default. */
  network: NetworkPolicy.optional(),
  mcp: McpServers.optional(),
  client_tools: z.array(StoredClientTool).optional(),
  client_hooks: StoredClientHooks.optional(),
  agents: Agents.optional(),
  subagent_limits: SubagentLimits.optional(),
  /** What was loaded at the creation; in a `SystemInit` it is in a field of the event. */
  project_settings: ProjectSettings.optional(),
})
export type Settings = z.infer<typeof Settings>

/** The stored settings: those of the project are in a field of the event. */
export const settingsIn = ({ options_summary, project_settings }: EventOf<'SystemInit'>): Record<string, unknown> =>
  project_settings ? { ...options_summary, project_settings } : options_summary
