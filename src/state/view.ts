/** The view of a conversation that clients see. */
import type { ConversationView } from '../contract/conversation.ts'
import { QUEUED } from '../contract/events/status.ts'
import type { McpServers, ShownMcp } from '../contract/mcp/mcp-server.ts'
import type { State } from './state.ts'
import { rulesOf } from './state.ts'

export function viewOf(state: State): ConversationView {
  const { settings } = state
  return {
    id: state.id,
    ...(settings.title !== undefined && { title: settings.title }),
    ...(settings.generate_title && { generate_title: true }),
    ...(settings.title_model !== undefined && { title_model: settings.title_model }),
    ...(settings.user_id !== undefined && { user_id: settings.user_id }),
    ...(settings.metadata && { metadata: settings.metadata }),
    workdir: settings.workdir,
    llm_config: settings.llm_config,
    tools: settings.tools,
    ...(settings.network && { network: settings.network }),
    ...(settings.hooks && { hooks: settings.hooks }),
    ...(settings.enable_message_rewrite_hooks && { enable_message_rewrite_hooks: true }),
    ...(settings.mcp && { mcp: shownMcp(settings.mcp) }),
    ...(settings.client_tools && { client_tools: settings.client_tools }),
    ...(settings.client_hooks && { client_hooks: Object.keys(settings.client_hooks) }),
    ...(settings.agents && { agents: settings.agents }),
    ...(settings.subagent_limits && { subagent_limits: settings.subagent_limits }),
    max_iteration_per_run: settings.max_iteration_per_run,
    ...(settings.max_seconds_per_run !== undefined && { max_seconds_per_run: settings.max_seconds_per_run }),
    ...(settings.output_schema && { output_schema: settings.output_schema }),
    ...(settings.max_tokens_per_run !== undefined && { max_tokens_per_run: settings.max_tokens_per_run }),
    ...(settings.max_budget_usd !== undefined && { max_budget_usd: settings.max_budget_usd }),
    ...(settings.compaction && { compaction: settings.compaction }),
    ...(settings.limits && { limits: settings.limits }),
    ...(settings.tool_config && { tool_config: settings.tool_config }),
    state: {
      id: state.id,
      agent_finished: state.status === 'finished',
      confirmation_mode: settings.confirmation_mode ?? false,
      permission_mode: rulesOf(state).mode,
      agent_waiting_for_confirmation: state.status === 'waiting_for_confirmation',
      agent_paused: state.status === 'paused',
      event_count: state.lastSeq,
      activated_knowledge_microagents: settings.microagents ?? [],
    },
    status: state.status,
    ...(state.status === 'running' && state.reason === QUEUED && { queued: true }),
    last_seq: state.lastSeq,
    usage: state.usage,
    ...(state.costUsd !== undefined && { cost_usd: state.costUsd }),
    created_at: state.createdAt,
    updated_at: state.updatedAt,
  }
}

/** As clients send it. */
function shownMcp(servers: McpServers): ShownMcp {
  const shown = Object.entries(servers).map(([name, { transport, ...server }]) => [
    name,
    { type: transport, ...server },
  ])
  return { mcpServers: Object.fromEntries(shown) }
}
