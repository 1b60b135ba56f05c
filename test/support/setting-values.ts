/** A value for each setting of a create, other than its default, that a server of a test accepts. */
import type { z } from 'zod'
import type { CreateConversation } from '../../src/contract/conversation.ts'
import type { NameIn } from '../../src/contract/setting-fields.ts'

type Wire = z.input<typeof CreateConversation>

export const VALUES: { readonly [K in NameIn<'create'>]: Wire[K] } = {
  title: 'totals',
  llm_config: {
    model: 'gpt-5',
    api_key: 'sk-a-key-of-the-model',
    base_url: 'https://api.openai.com/v1',
    temperature: 0.5,
    extra_headers: { 'x-team': 'a-secret-header' },
  },
  labels: ['nightly'],
  metadata: { team: 'a' },
  env: { STAGE: 'test' },
  max_iteration_per_run: 50,
  max_seconds_per_run: 100,
  max_tokens_per_run: 1000,
  max_budget_usd: 5,
  allow_unpriced: true,
  compaction: { threshold: 0.7 },
  output_schema: { type: 'object', properties: { sum: { type: 'number' } } },
  tool_config: { Bash: { timeout_s: 5 } },
  agents: { reviewer: { description: 'Reviews.', prompt: 'Review it.', tools: ['Bash'] } },
  subagent_limits: { max_concurrent: 5 },
  permission_mode: 'accept_edits',
  enable_message_rewrite_hooks: true,
  file_checkpointing: true,
  network: { mode: 'open' },
  hooks: { Stop: [{ hooks: [{ type: 'command', command: 'true' }] }] },
  client_tools: [
    { name: 'ask_erp', description: 'Asks.', input_schema: { type: 'object' } },
    { name: 'tell_erp', description: 'Tells.', input_schema: { type: 'object' } },
  ],
  mcp: {
    mcpServers: {
      files: { command: 'files', args: ['.'], env: { API_KEY: 'a-secret-of-mcp' }, timeout: 10 },
      issues: { type: 'sse', url: 'https://mcp.example.com/sse', headers: { Authorization: 'Bearer secret' } },
      plain: { url: 'https://mcp.example.com/mcp', allowed_tools: ['a'], require_approval: true },
    },
  },
  title_model: 'gpt-5-nano',
  generate_title: true,
  user_id: 'user-17',
  profile: 'default',
  external_id: 'thread-1',
  microagents: ['Use tabs.'],
  tools: ['Bash'],
  confirmation_mode: true,
  permission_rules: { allow: ['Bash(ls)'], ask: [], deny: [] },
  resume_on_start: true,
  visualize: true,
  limits: { processes: 100 },
  workdir: 'here',
  additional_directories: ['/also'],
}
