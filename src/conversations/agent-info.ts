/**
 * Describes the agent of a conversation from its configuration and the first event of its log. Neither contains a
 * secret.
 */
import type { AgentInfo } from '../contract/agent-info.ts'
import { HOOK_POINTS } from '../contract/hooks/hook-point.ts'
import type { EventLog } from '../events/event-log.ts'
import type { ModelTool } from '../llm/llm.ts'
import type { Settings } from '../state/settings.ts'
import { agentEntries } from './subagents/definitions.ts'
import { baseUrlOf } from './config/check-endpoint.ts'

export type Agent = {
  readonly settings: Settings
  readonly log: Pick<EventLog, 'read'>
  readonly tools: readonly ModelTool[]
  readonly mcpServers: AgentInfo['mcp_servers']
  readonly isolation: AgentInfo['isolation']
  readonly network: AgentInfo['network']
  readonly resourceLimits: AgentInfo['resource_limits']
}

export async function describeAgent({ settings, log, tools, mcpServers, ...inForce }: Agent): Promise<AgentInfo> {
  const { isolation, network, resourceLimits } = inForce
  const { llm_config, microagents = [], confirmation_mode = false, workdir } = settings
  const { max_iteration_per_run, max_seconds_per_run } = settings
  const base_url = baseUrlOf(llm_config)
  return {
    model: llm_config.model ?? '',
    provider: llm_config.custom_llm_provider ?? 'openai',
    ...(base_url !== undefined && { base_url }),
    system_prompt: await systemPromptIn(log),
    microagents,
    tools: tools.map(({ name, description, inputSchema }) => {
      return { name, description, input_schema: { ...inputSchema } }
    }),
    mcp_servers: mcpServers,
    agents: agentEntries(settings),
    confirmation_mode,
    hooks: HOOK_POINTS.filter((point) => hooksOf(settings).some((hooks) => hooks?.[point]?.length)),
    isolation,
    network,
    workdir,
    limits: { max_iteration_per_run, ...(max_seconds_per_run !== undefined && { max_seconds_per_run }) },
    resource_limits: resourceLimits,
    ...(settings.project_settings && { project_settings: settings.project_settings }),
  }
}

/** Returns the hooks of the configuration and of clients. */
const hooksOf = ({ hooks, client_hooks = {} }: Settings) => [
  hooks,
  ...Object.values(client_hooks).map((client) => client.hooks),
]

async function systemPromptIn(log: Agent['log']): Promise<string> {
  const { events } = await log.read({ limit: 1 })
  const first = events[0]?.event
  return first?.type === 'SystemInit' ? first.system_prompt : ''
}
