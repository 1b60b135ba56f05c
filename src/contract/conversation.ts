/** Conversations on the wire: creation, configuration and views. */
import { z } from 'zod'
import { ClientTools, StoredClientTool } from './client-tools/client-tool.ts'
import { Metadata, NewMetadata, Title, TitleWriting, Workdir } from './conversations/given-fields.ts'
import { CompactionSettings } from './compaction/settings.ts'
import { MaxBudget, MaxIterations, MaxSeconds, MaxTokens } from './limits/run-limits.ts'
import { Status } from './events/status.ts'
import { DroppedCredential, LlmConfig, LlmConfigInput } from './llm-config.ts'
import { UsageByModel, UserInput } from './message.ts'
import { Hooks } from './hooks/hooks.ts'
import { OutputSchema, OutputSchemaUpdate } from './run.ts'
import { PageLimit } from './page.ts'
import { RequestedLimits } from './limits/resource-limits.ts'
import { ProjectSource } from './project/project-settings.ts'
import { PermissionMode, PermissionModeInput, PermissionRules, RuleTexts } from './permission.ts'
import { NetworkPolicy } from './network.ts'
import { ToolConfig } from './limits/tool-config.ts'
import { Secrets } from './secret.ts'
import { McpInput, ShownMcp } from './mcp/mcp-server.ts'
import { AgentFields, Agents, SubagentLimits } from './agents/definition.ts'

export const ConversationId = z.uuid().toLowerCase()

const RewriteHooks = z
  .boolean()
  .describe('Whether `PreModelCall` and `PostModelCall` hooks may see and rewrite whole messages. Default: false.')

/** A set of tools with a name. */
const ToolPreset = z.enum(['default', 'minimal', 'claude', 'openhands'])
export type ToolPreset = z.infer<typeof ToolPreset>

/** `tools` absent is the default preset, `[]` none. */
export const CreateConversation = z
  .strictObject({
    id: ConversationId.optional().describe('A UUID. Default: a new one.'),
    title: Title.optional(),
    ...TitleWriting,
    user_id: z.string().max(200).optional(),
    metadata: NewMetadata.optional(),
    workdir: Workdir.optional(),
    llm_config: LlmConfigInput.optional().describe('Default: LLM_MODEL, LLM_API_KEY and LLM_BASE_URL of the server.'),
    tools: z
      .union([z.array(z.string()).max(100), ToolPreset])
      .optional()
      .describe(
        'Names of tools, or a preset: `default`, `minimal`, `claude` or `openhands`. Aliases from other agent servers, such as `execute_bash`, are accepted. Absent: the default preset. `[]`: no tools.',
      ),
    max_iteration_per_run: MaxIterations.default(500),
    max_seconds_per_run: MaxSeconds.optional(),
    output_schema: OutputSchema.optional().describe('For every run that does not have another one.'),
    max_tokens_per_run: MaxTokens.optional(),
    max_budget_usd: MaxBudget.optional(),
    compaction: CompactionSettings.optional(),
    confirmation_mode: z.boolean().optional().describe('Whether tool calls wait for a decision.'),
    permission_mode: PermissionModeInput.optional().describe(`${PermissionModeInput.description} Default: \`bypass\`.`),
    permission_rules: PermissionRules.optional().describe(
      'Rules about single tool calls, such as `Bash(git status:*)`.',
    ),
    allowed_tools: RuleTexts.optional().describe('More `allow` rules.'),
    disallowed_tools: RuleTexts.optional().describe('More `deny` rules.'),
    hooks: Hooks.optional().describe(
      'Commands and URLs that are called at points of a run. Commands need the scope `commands`, URLs the scope `read`.',
    ),
    enable_message_rewrite_hooks: RewriteHooks.optional(),
    system_prompt: z.string().min(1).optional().describe('Replaces the default prompt of the server.'),
    system_prompt_extensions: z.array(z.string().min(1)).optional(),
    microagents: z.array(z.string().min(1)).optional().describe('Texts that are appended after the extensions.'),
    initial_message: UserInput.optional().describe('Stored as the first message. Does not start the agent.'),
    resume_on_start: z
      .boolean()
      .optional()
      .describe('Whether a run that was interrupted by a stop of the server resumes at the next start.'),
    visualize: z.boolean().optional().describe('Log readable event lines in the log of the server.'),
    secrets: Secrets.optional(),
    limits: RequestedLimits.optional(),
    tool_config: ToolConfig.optional(),
    network: NetworkPolicy.optional().describe(
      'Hosts that commands may reach. Default: OPENHANDS_NETWORK of the server.',
    ),
    setting_sources: z
      .array(ProjectSource)
      .max(10)
      .optional()
      .describe('Where settings, instructions, skills and slash commands are loaded from. Default: nothing is loaded.'),
    trust_project: z
      .boolean()
      .optional()
      .describe(
        'Whether files of the workdir may give rights: `allow` rules, a mode, `allowed-tools` and hooks, which need the same scopes as `hooks`. Rules that deny or ask always hold. Default: false.',
      ),
    mcp: McpInput.optional().describe('Servers of the Model Context Protocol, whose tools the agent gets.'),
    client_tools: ClientTools.optional(),
    ...AgentFields,
  })
  .meta({
    id: 'CreateConversation',
    examples: [
      {
        title: 'totals',
        llm_config: { model: 'gpt-5', api_key: 'sk-example-key', base_url: 'https://api.openai.com/v1' },
        tools: ['Bash', 'FileEditor'],
        confirmation_mode: true,
        secrets: { GITHUB_TOKEN: 'ghp_example-value' },
        initial_message: { role: 'user', content: 'Write total.sh, which adds up a CSV file.' },
      },
      {},
    ],
  })
export type CreateConversation = z.infer<typeof CreateConversation>

export const ForkConversation = z
  .strictObject({
    at_seq: z
      .int()
      .positive()
      .optional()
      .describe(
        'The last event to copy. Default: all events. A model answer is copied only together with all its calls.',
      ),
    workdir: z
      .enum(['copy', 'share'])
      .default('copy')
      .describe(
        '`copy`: a new directory with a copy of the current content. `share`: the same directory. A directory that the server created is removed with the last conversation that shares it.',
      ),
    title: Title.optional().describe('Default: the title of the original.'),
    id: ConversationId.optional().describe('A UUID. Default: a new one.'),
  })
  .meta({ id: 'ForkConversation', examples: [{ title: 'totals, second attempt' }] })
export type ForkConversation = z.infer<typeof ForkConversation>
/** `PUT config` merges: absent fields are unchanged. */
export const UpdateConfig = z
  .strictObject({
    title: Title.optional(),
    workdir: Workdir.optional().describe('Can change only while the agent is not running.'),
    llm_config: LlmConfigInput.optional().describe(
      'The fields that change. If the origin changes (by `base_url` or by the provider of the model), stored credentials that are not sent again are deleted: see `dropped`.',
    ),
    max_iteration_per_run: MaxIterations.optional(),
    max_seconds_per_run: MaxSeconds.optional(),
    max_tokens_per_run: MaxTokens.optional(),
    max_budget_usd: MaxBudget.optional(),
    compaction: CompactionSettings.optional().describe('Replaces all of them.'),
    output_schema: OutputSchemaUpdate.optional().describe(
      'Replaces the one for every run; `null` removes it. A run that has asked for its output keeps its own.',
    ),
    visualize: z.boolean().optional(),
    tool_config: ToolConfig.optional().describe('Replaces all limits of tools. It holds from the next call on.'),
    agents: Agents.optional().describe('Replaces all agents of the request; those that work keep their definition.'),
    subagent_limits: SubagentLimits.optional().describe(
      'Replaces both. They hold from the next call on; subagents that work continue.',
    ),
    permission_mode: PermissionModeInput.optional().describe(
      `${PermissionModeInput.description} Needs the scope \`approve\`. Calls that already wait still need a decision.`,
    ),
    hooks: Hooks.optional().describe(
      'Replaces all hooks; `{}` removes them. Needs the scope `approve`, commands also `commands`, URLs also `read`. A masked secret that is sent back keeps the stored one of the same URL.',
    ),
    client_tools: ClientTools.optional().describe(
      'Replaces all client tools; `[]` removes them. Calls that already wait can still be answered.',
    ),
    mcp: McpInput.optional().describe(
      'Replaces all MCP servers, those of `.mcp.json` too; `{}` removes them. Needs the scope `approve`, programs also `commands`. A masked credential that is sent back keeps the stored one if the same receiver gets it.',
    ),
    enable_message_rewrite_hooks: RewriteHooks.optional().describe(
      `${RewriteHooks.description} Needs the scope \`approve\`.`,
    ),
    network: NetworkPolicy.optional().describe(
      'Replaces the whole policy. Needs the scope `approve`. It takes effect at once, also for open connections. The mode can change only while the agent is not running, and a change ends the shells.',
    ),
  })
  .meta({ id: 'UpdateConfig', examples: [{ llm_config: { api_key: 'sk-example-key' }, max_iteration_per_run: 50 }] })
export type UpdateConfig = z.infer<typeof UpdateConfig>

const ConversationState = z
  .object({
    id: z.uuid(),
    agent_finished: z.boolean(),
    confirmation_mode: z.boolean(),
    permission_mode: PermissionMode,
    agent_waiting_for_confirmation: z.boolean(),
    agent_paused: z.boolean(),
    event_count: z.int().nonnegative(),
    activated_knowledge_microagents: z.array(z.string()),
  })
  .meta({ id: 'ConversationState' })

export const ConversationView = z
  .object({
    id: z.uuid(),
    title: z.string().optional(),
    generate_title: z.boolean().optional(),
    title_model: z.string().optional(),
    user_id: z.string().optional(),
    metadata: Metadata.optional(),
    workdir: z.string(),
    llm_config: LlmConfig.describe('Secret values are masked.'),
    tools: z.array(z.string()),
    network: NetworkPolicy.optional().describe('Default: OPENHANDS_NETWORK of the server.'),
    hooks: Hooks.optional().describe('Secrets are masked.'),
    enable_message_rewrite_hooks: z.boolean().optional(),
    mcp: ShownMcp.optional().describe('Credentials are masked.'),
    client_tools: z.array(StoredClientTool).optional(),
    client_hooks: z.array(z.string()).optional().describe('Names of the clients that answer hooks.'),
    ...AgentFields,
    max_iteration_per_run: z.int(),
    max_seconds_per_run: z.number().optional(),
    max_tokens_per_run: z.int().optional(),
    max_budget_usd: z.number().optional(),
    compaction: CompactionSettings.optional(),
    output_schema: OutputSchema.optional(),
    limits: RequestedLimits.optional().describe('The requested limits. `agent-info` shows the limits in force.'),
    tool_config: ToolConfig.optional(),
    state: ConversationState,
    status: Status,
    queued: z
      .boolean()
      .optional()
      .describe('The run waits because OPENHANDS_MAX_CONCURRENT_RUNS other runs are active.'),
    last_seq: z.int().nonnegative(),
    usage: UsageByModel.describe('Usage of the whole conversation, by model.'),
    cost_usd: z.number().optional(),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
    warnings: z.array(z.string()).optional().describe('Fields of the request that were ignored, and other warnings.'),
    dropped: z
      .array(DroppedCredential)
      .optional()
      .describe(
        'After a change to another origin (scheme, host and port): the stored credentials that were deleted, so that they are not sent there. Send them again if they are valid for the new origin.',
      ),
  })
  .meta({
    id: 'Conversation',
    examples: [
      {
        id: '0199a1f0-5c3e-7d12-9b1a-2f6d8c40a7e1',
        title: 'totals',
        workdir: '/data/work/0199a1f0-5c3e-7d12-9b1a-2f6d8c40a7e1',
        llm_config: { model: 'gpt-5', api_key: '**********', base_url: 'https://api.openai.com/v1' },
        tools: ['Bash', 'FileEditor'],
        max_iteration_per_run: 500,
        state: {
          id: '0199a1f0-5c3e-7d12-9b1a-2f6d8c40a7e1',
          agent_finished: false,
          confirmation_mode: true,
          permission_mode: 'default',
          agent_waiting_for_confirmation: false,
          agent_paused: false,
          event_count: 4,
          activated_knowledge_microagents: [],
        },
        status: 'running',
        last_seq: 4,
        usage: { 'gpt-5': { input_tokens: 1200, output_tokens: 80, cached_tokens: 1000, reasoning_tokens: 0 } },
        created_at: '2026-01-31T12:00:00.000Z',
        updated_at: '2026-01-31T12:00:07.250Z',
      },
    ],
  })
export type ConversationView = z.infer<typeof ConversationView>

export const ConversationPage = z
  .object({ items: z.array(ConversationView), next_page_id: z.string().nullable() })
  .meta({ id: 'ConversationPage' })

const ConversationFilter = {
  status: Status.optional(),
  q: z.string().min(1).max(200).optional().describe('Part of the title or of the first message, case-insensitive.'),
  user_id: z.string().optional(),
  created_after: z.iso.datetime({ offset: true }).optional().describe('RFC 3339, inclusive.'),
  created_before: z.iso.datetime({ offset: true }).optional().describe('RFC 3339, exclusive.'),
  updated_after: z.iso.datetime({ offset: true }).optional().describe('RFC 3339, inclusive.'),
  updated_before: z.iso.datetime({ offset: true }).optional().describe('RFC 3339, exclusive.'),
}

export const CountConversations = z.strictObject(ConversationFilter)
export type CountConversations = z.infer<typeof CountConversations>

export const ListConversations = z.strictObject({
  ...ConversationFilter,
  order: z.enum(['asc', 'desc']).default('desc').describe('Sort by creation time.'),
  limit: PageLimit,
  page_id: z.string().optional().describe('`next_page_id` of the previous page.'),
})
export type ListConversations = z.infer<typeof ListConversations>

export const IdempotencyKey = z
  .string()
  .regex(/^[\x21-\x7e]{1,255}$/, 'must have 1 to 255 visible ASCII characters')
  .describe(
    'For 24 hours, requests with the same key and body are executed once and get the same response. Use it to retry after a lost response.',
  )
