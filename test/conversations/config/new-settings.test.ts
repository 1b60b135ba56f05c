/** The stored settings of a new conversation: each that was sent is in them. */
import { expect, test } from 'vitest'
import { CreateConversation } from '../../../src/contract/conversation.ts'
import type { NameIn } from '../../../src/contract/setting-fields.ts'
import { namesIn } from '../../../src/contract/setting-fields.ts'
import { SETTINGS } from '../../../src/contract/settings.ts'
import { newSettings } from '../../../src/conversations/config/settings.ts'
import { Settings } from '../../../src/state/settings.ts'

/** A value for each setting of a create, other than its default. */
const VALUES: { readonly [K in NameIn<'create'>]: CreateConversation[K] } = {
  title: 'totals of secret-value',
  labels: ['secret-value', 'urgent'],
  generate_title: true,
  title_model: 'small',
  user_id: 'user-17',
  profile: 'reviewer',
  external_id: 'thread-1',
  metadata: { team: 'secret-value' },
  workdir: 'here',
  additional_directories: ['/also'],
  env: { NODE_ENV: 'test' },
  llm_config: { model: 'gpt-5', api_key: 'sk-key-of-the-model' },
  tools: ['Bash'],
  max_iteration_per_run: 7,
  max_seconds_per_run: 8,
  max_tokens_per_run: 9,
  max_budget_usd: 10,
  allow_unpriced: true,
  compaction: { threshold: 0.5 },
  output_schema: { type: 'object' },
  confirmation_mode: true,
  permission_mode: 'plan',
  permission_rules: { allow: ['Bash(ls:*)'], ask: [], deny: [] },
  hooks: { Stop: [{ hooks: [{ type: 'command', command: 'true' }] }] },
  enable_message_rewrite_hooks: true,
  microagents: ['be brief'],
  resume_on_start: true,
  visualize: true,
  file_checkpointing: true,
  limits: { processes: 20 },
  tool_config: { Bash: { timeout_s: 5 } },
  network: { mode: 'open' },
  mcp: { mcpServers: {} },
  client_tools: [{ name: 'ask_erp', description: 'Asks.', input_schema: { type: 'object' } }],
  agents: { reviewer: { description: 'Reviews.', prompt: 'Review it.' } },
  subagent_limits: { max_concurrent: 5 },
}

const request = CreateConversation.parse(VALUES)
const stored = newSettings({
  request,
  idempotency: undefined,
  llm: { model: 'gpt-5' },
  workdir: '/here',
  additionalDirectories: ['/also'],
  tools: ['Bash'],
  hooks: request.hooks,
  project: undefined,
  mcp: {},
  agents: request.agents,
  redact: (text) => text.replaceAll('secret-value', '*'),
})

test('each setting that was sent is stored, and none has a secret', () => {
  const names = namesIn('create')
  expect(names.length).toBeGreaterThan(20)
  for (const name of names) expect(stored, name).toHaveProperty(name)
  const sent = names.filter((name) => SETTINGS[name].from === 'sent')
  for (const name of sent) expect(stored[name], name).toEqual(request[name])
  expect(stored).toMatchObject({ title: 'totals of *', labels: ['*', 'urgent'], metadata: { team: '*' } })
  expect(JSON.stringify(stored)).not.toContain('secret-value')
})

test('the log gives back the settings that it was given', () => {
  expect(Settings.parse(JSON.parse(JSON.stringify(stored)))).toEqual(stored)
})
