/**
 * The settings of a conversation, each written down once: what a create and an update accept, what the log stores and
 * what the view shows. A setting is added by one entry: requests, views, the fold and the options of the SDKs
 * follow the table by `setting-fields.ts`. What a schema cannot check is in `conversations/check-settings.ts`.
 */
import { z } from 'zod'
import { Agents, SubagentLimits } from './agents/definition.ts'
import { ClientTools, StoredClientTool } from './client-tools/client-tool.ts'
import { CompactionSettings } from './compaction/settings.ts'
import {
  Archived,
  CHOSEN_NAMES,
  Env,
  FileCheckpointing,
  Labels,
  Metadata,
  MoreDirectories,
  NewMetadata,
  Title,
  TitleWriting,
  Workdir,
} from './conversations/given-fields.ts'
import { StoredClientHooks } from './hooks/client-hooks.ts'
import { currentTools, withCurrentTools } from './values/earlier-tools.ts'
import { Hooks } from './hooks/hooks.ts'
import { RequestedLimits } from './limits/resource-limits.ts'
import { RUN_LIMITS } from './limits/run-limits.ts'
import { ToolConfig } from './limits/tool-config.ts'
import { LlmConfig, LlmConfigInput } from './values/llm-config.ts'
import { McpInput, McpServers, ShownMcp } from './mcp/mcp-server.ts'
import { NetworkPolicy } from './values/network.ts'
import { PermissionMode, PermissionModeInput, PermissionRules, StoredRules } from './values/permission.ts'
import { ProjectSettings } from './project/project-settings.ts'
import { OutputSchema, OutputSchemaUpdate } from './run.ts'

export type Setting = {
  /** Its field in `CreateConversation`. Absent: it cannot be sent there. */
  readonly create?: z.ZodType
  /** Its field in `UpdateConfig`. Absent: it never changes. */
  readonly update?: z.ZodType
  /** Its field in the `options_summary` of `SystemInit`, without secret values. */
  readonly stored: z.ZodType
  /** Its field in the view. Absent: it is not shown. */
  readonly shown?: z.ZodType
  /** What is stored of a create: `sent` as it is, `text` with secret values redacted, `derived` as `config/settings.ts` computes it. */
  readonly from: 'sent' | 'text' | 'derived'
}

const RewriteHooks = z
  .boolean()
  .describe('Whether `PreModelCall` and `PostModelCall` hooks may see and rewrite whole messages. Default: false.')

const ToolPreset = z.enum(['default', 'minimal', 'claude', 'openhands'])
export type ToolPreset = z.infer<typeof ToolPreset>

const text = z.string().optional()
const texts = z.array(z.string()).optional()
const flag = z.boolean().optional()
const limits = SubagentLimits.optional()

/** The settings in the order of the documentation. */
export const SETTINGS = {
  title: { create: Title.optional(), update: Title.optional(), stored: text, shown: text, from: 'text' },
  labels: {
    create: Labels.optional(),
    update: Labels.optional().describe('Replaces all of them; `[]` removes them.'),
    stored: texts,
    shown: texts,
    from: 'text',
  },
  archived: { update: Archived.optional(), stored: flag, shown: flag, from: 'sent' },
  generate_title: { create: TitleWriting.generate_title, stored: flag, shown: flag, from: 'sent' },
  title_model: { create: TitleWriting.title_model, stored: text, shown: text, from: 'text' },
  ...CHOSEN_NAMES,
  metadata: {
    create: NewMetadata.optional(),
    update: NewMetadata.optional().describe('Replaces the whole object. At most 64 KiB as JSON.'),
    stored: z.record(z.string(), z.unknown()).optional(),
    shown: Metadata.optional(),
    from: 'text',
  },
  workdir: {
    create: Workdir.optional(),
    update: Workdir.optional().describe('Can change only while the agent is not running. Needs the scope `approve`.'),
    stored: z.string(),
    shown: z.string(),
    from: 'derived',
  },
  env: {
    create: Env.optional(),
    update: Env.optional().describe(
      'Replaces all of them, from the next command on; `{}` removes them. Needs the scope `approve`.',
    ),
    stored: z.record(z.string(), z.string()).optional(),
    shown: z.record(z.string(), z.string()).optional(),
    from: 'sent',
  },
  additional_directories: { ...MoreDirectories, stored: texts, shown: texts, from: 'derived' },
  /** The directory that the server created for it and deletes with it, even if it works elsewhere now. */
  made_workdir: { stored: text, from: 'derived' },
  llm_config: {
    create: LlmConfigInput.optional().describe('Default: LLM_MODEL, LLM_API_KEY and LLM_BASE_URL of the server.'),
    update: LlmConfigInput.optional().describe(
      'The fields that change. If the origin changes (by `base_url` or by the provider of the model), stored credentials that are not sent again are deleted, and so are the window and the prices if the origin or the model changes: see `dropped`.',
    ),
    stored: LlmConfig,
    shown: LlmConfig.describe('Secret values are masked.'),
    from: 'derived',
  },
  tools: {
    create: z
      .union([z.array(z.string()).max(100).overwrite(currentTools), ToolPreset])
      .optional()
      .describe(
        'Names of tools, or a preset: `default`, `minimal`, `claude` or `openhands`. Aliases from other agent servers, such as `execute_bash`, are accepted. Absent: the default preset. `[]`: no tools.',
      ),
    stored: z.array(z.string()).overwrite(currentTools),
    shown: z.array(z.string()),
    from: 'derived',
  },
  ...RUN_LIMITS,
  compaction: {
    create: CompactionSettings.optional(),
    update: CompactionSettings.optional().describe('Replaces all of them.'),
    stored: CompactionSettings.optional(),
    shown: CompactionSettings.optional(),
    from: 'sent',
  },
  output_schema: {
    create: OutputSchema.optional().describe('For every run that does not have another one.'),
    update: OutputSchemaUpdate.optional().describe(
      'Replaces the one for every run; `null` removes it. A run that has asked for its output keeps its own.',
    ),
    stored: z.record(z.string(), z.unknown()).optional(),
    shown: OutputSchema.optional(),
    from: 'text',
  },
  confirmation_mode: {
    create: flag.describe('Whether tool calls wait for a decision.'),
    stored: flag,
    from: 'sent',
  },
  permission_mode: {
    create: PermissionModeInput.optional().describe(`${PermissionModeInput.description} Default: \`bypass\`.`),
    update: PermissionModeInput.optional().describe(
      `${PermissionModeInput.description} Needs the scope \`approve\`. Calls that already wait still need a decision.`,
    ),
    /** Absent: `bypass`, as nobody may be there to ask. */
    stored: PermissionMode.optional(),
    from: 'derived',
  },
  permission_rules: {
    create: PermissionRules.optional().describe('Rules about single tool calls, such as `Bash(git status:*)`.'),
    stored: StoredRules.optional(),
    from: 'derived',
  },
  hooks: {
    create: Hooks.optional().describe(
      'Commands and URLs that are called at points of a run. Commands need the scope `commands`, URLs the scope `read`.',
    ),
    update: Hooks.optional().describe(
      'Replaces all hooks; `{}` removes them. Needs the scope `approve`, commands also `commands`, URLs also `read`. A masked secret that is sent back keeps the stored one of the same URL.',
    ),
    /** The secrets are masked. */
    stored: Hooks.optional(),
    shown: Hooks.optional().describe('Secrets are masked.'),
    from: 'derived',
  },
  enable_message_rewrite_hooks: {
    create: RewriteHooks.optional(),
    update: RewriteHooks.optional().describe(`${RewriteHooks.description} Needs the scope \`approve\`.`),
    stored: flag,
    shown: flag,
    from: 'sent',
  },
  microagents: {
    create: z.array(z.string().min(1)).optional().describe('Texts that are appended after the extensions.'),
    stored: texts,
    from: 'text',
  },
  resume_on_start: {
    create: flag.describe('Whether a run that was interrupted by a stop of the server resumes at the next start.'),
    stored: flag,
    from: 'sent',
  },
  visualize: {
    create: flag.describe('Log readable event lines in the log of the server.'),
    update: flag,
    stored: flag,
    from: 'sent',
  },
  file_checkpointing: {
    ...FileCheckpointing,
    from: 'sent',
  },
  limits: {
    create: RequestedLimits.optional(),
    stored: RequestedLimits.optional(),
    shown: RequestedLimits.optional().describe('The requested limits. `agent-info` shows the limits in force.'),
    from: 'sent',
  },
  tool_config: {
    create: ToolConfig.optional(),
    update: ToolConfig.optional().describe('Replaces all limits of tools. It holds from the next call on.'),
    stored: z.preprocess(withCurrentTools, ToolConfig).optional(),
    shown: ToolConfig.optional(),
    from: 'sent',
  },
  network: {
    create: NetworkPolicy.optional().describe(
      'Hosts that commands may reach. Default: OPENHANDS_NETWORK of the server.',
    ),
    update: NetworkPolicy.optional().describe(
      'Replaces the whole policy. Needs the scope `approve`. It takes effect at once, also for open connections. The mode can change only while the agent is not running, and a change ends the shells.',
    ),
    /** Absent: the server's current default. */
    stored: NetworkPolicy.optional(),
    shown: NetworkPolicy.optional().describe('Default: OPENHANDS_NETWORK of the server.'),
    from: 'sent',
  },
  mcp: {
    create: McpInput.optional().describe('Servers of the Model Context Protocol, whose tools the agent gets.'),
    update: McpInput.optional().describe(
      'Replaces all MCP servers, those of `.mcp.json` too; `{}` removes them. Needs the scope `approve`, programs also `commands`. A masked credential that is sent back keeps the stored one if the same receiver gets it.',
    ),
    stored: McpServers.optional(),
    shown: ShownMcp.optional().describe('Credentials are masked.'),
    from: 'derived',
  },
  client_tools: {
    create: ClientTools.optional(),
    update: ClientTools.optional().describe(
      'Replaces all client tools; `[]` removes them. Calls that already wait can still be answered.',
    ),
    stored: z.array(StoredClientTool).optional(),
    shown: z.array(StoredClientTool).optional(),
    from: 'derived',
  },
  client_hooks: {
    stored: StoredClientHooks.optional(),
    shown: z.array(z.string()).optional().describe('Names of the clients that answer hooks.'),
    from: 'derived',
  },
  agents: {
    create: Agents.optional().describe('Subagents by name, for the tool `Task`, which the agent then has.'),
    update: Agents.optional().describe('Replaces all agents of the request; those that work keep their definition.'),
    stored: Agents.optional(),
    shown: Agents.optional().describe('Subagents by name, for the tool `Task`, which the agent then has.'),
    from: 'derived',
  },
  subagent_limits: {
    create: limits,
    update: limits.describe('Replaces both. They hold from the next call on; subagents that work continue.'),
    stored: limits,
    shown: limits,
    from: 'sent',
  },
  /** The idempotency key of the request that created it. */
  idempotency: {
    stored: z.object({ key: z.string(), bodyHash: z.string(), warnings: z.array(z.string()).optional() }).optional(),
    from: 'derived',
  },
  /** What was loaded at the creation; in a `SystemInit` it is in a field of the event. */
  project_settings: { stored: ProjectSettings.optional(), from: 'derived' },
} as const satisfies Readonly<Record<string, Setting>>
