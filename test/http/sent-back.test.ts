/** What a view shows can be sent back: a client reads the configuration, changes a field, and puts the rest as it was. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ConversationView, CreateConversation, UpdateConfig } from '../../src/contract/conversation.ts'
import { Settings } from '../../src/state/settings.ts'
import { setHttp } from './fixtures.ts'

/** Has a value for each field of `PUT config`. */
const FULL = {
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
}

/** Not in a view: read with the rules, only for the log of the server, or no setting. */
const NOT_SHOWN = ['permission_mode', 'visualize', 'after_seq']

/** Has a value for each field of a new conversation that is one of its settings. */
const FULL_NEW = {
  ...FULL,
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
}

async function anotherIn(directory: string): Promise<string> {
  const path = join(directory, 'more')
  await mkdir(path, { recursive: true })
  return path
}

test('each field of a new conversation that is a setting is kept, and none is forgotten', async () => {
  await using http = await setHttp()
  const workdir = http.bench.workdirBase
  const request: Record<string, unknown> = { ...FULL_NEW, workdir, additional_directories: [await anotherIn(workdir)] }
  const fields = Object.keys(CreateConversation.shape).filter((field) => Object.hasOwn(Settings.shape, field))
  expect(fields.filter((field) => request[field] === undefined)).toEqual([])
  const { state } = await http.bench.manager.open(await http.create(request))
  const settings: Record<string, unknown> = state.settings
  expect(fields.filter((field) => settings[field] === undefined)).toEqual([])
  expect(http.bench.logged.join(''), 'visualize writes the events to the log').toMatch(/conversation \S+ in /)
})

test('each field of a view changes nothing if it is sent back, also masked', async () => {
  await using http = await setHttp()
  const more = await anotherIn(http.bench.workdirBase)
  const id = await http.create({ ...FULL, additional_directories: [more] })
  await http.call('PUT', `/conversations/${id}/config`, { archived: true })
  const { body: view } = await http.call('GET', `/conversations/${id}`)
  const fields = Object.keys(UpdateConfig.shape).filter((field) => !NOT_SHOWN.includes(field))
  expect(fields.filter((field) => !Object.hasOwn(ConversationView.shape, field))).toEqual([])
  expect(fields.filter((field) => view[field] === undefined)).toEqual([])
  const shown = Object.fromEntries(fields.map((field) => [field, view[field]]))
  const put = await http.call('PUT', `/conversations/${id}/config`, { ...shown, title: 'changed' })
  expect(put.status, put.text).toBe(200)
  const { body: after } = await http.call('GET', `/conversations/${id}`)
  expect(Object.fromEntries(fields.map((field) => [field, after[field]]))).toEqual({ ...shown, title: 'changed' })
  const { body: events } = await http.call('GET', `/conversations/${id}/events?types=ConfigUpdate`)
  expect(events.items.at(-1).changes.dropped).toBeUndefined()
})

test('rules can be sent back with those of the project, which stay', async () => {
  await using http = await setHttp()
  const url = `/conversations/${await http.create()}/permission-rules`
  const none = { allow: [], ask: [], deny: [] }
  const { status, body } = await http.call('PUT', url, {
    ...none,
    deny: ['Bash(rm:*)'],
    project: { deny: ['Bash(ls)'] },
  })
  expect([status, body]).toEqual([200, { ...none, deny: ['Bash(rm:*)'] }])
})
