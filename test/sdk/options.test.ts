/** Each option of a query has the effect that it names. Those that decide and answer are in query.test.ts. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { QueryOptions } from '../../src/index.ts'
import { query, run } from '../../src/index.ts'
import { setServedStage } from './stage.ts'

const stage = await setServedStage()
const { server } = stage
const project = join(stage.home, 'project')
await mkdir(project)
await writeFile(join(project, 'CLAUDE.md'), 'This project counts in dozens.')

const ALL: QueryOptions = {
  ...stage.options,
  provider: 'openai',
  llm: { temperature: 0.25, maxOutputTokens: 500 },
  maxSteps: 7,
  timeoutS: 60,
  maxBudgetUsd: 5,
  allowUnpriced: true,
  projectDir: project,
  settingSources: ['project'],
  tools: ['Bash', 'Task'],
  allowedTools: ['Bash(ls:*)'],
  disallowedTools: ['Bash(rm:*)'],
  toolConfig: { Bash: { timeoutS: 30, maxOutputChars: 2000 } },
  permissionMode: 'accept_edits',
  enableMessageRewriteHooks: true,
  agents: { helper: { description: 'Counts sheep.', prompt: 'Count.', tools: ['Bash'], maxSteps: 3 } },
  mcpServers: { broken: { command: '/nowhere/at-all' } },
  systemPrompt: { append: 'Speak plainly.' },
  title: 'all options',
}

test('options of a new session reach the server and the model', async () => {
  const { sessionId, stopReason } = await run({ prompt: 'hello', options: ALL })
  expect(stopReason).toBe('completed')
  expect(await server.client.conversation(sessionId).get()).toMatchObject({
    title: 'all options',
    workdir: project,
    tools: ['Bash', 'Task'],
    llm_config: { model: 'scripted', provider: 'openai', temperature: 0.25, max_output_tokens: 500 },
    max_iteration_per_run: 7,
    max_seconds_per_run: 60,
    max_budget_usd: 5,
    allow_unpriced: true,
    tool_config: { Bash: { timeout_s: 30, max_output_chars: 2000 } },
    enable_message_rewrite_hooks: true,
    state: { permission_mode: 'accept_edits' },
  })
  expect(await server.client.conversation(sessionId).permissionRules.get()).toMatchObject({
    allow: ['Bash(ls:*)'],
    deny: ['Bash(rm:*)'],
  })
  const request = JSON.stringify(stage.model.requests.at(-1))
  for (const text of ['Speak plainly.', 'counts in dozens', 'Counts sheep.']) expect(request).toContain(text)
  // The server may still try to start it when the run ends.
  const events = () => server.client.conversation(sessionId).listEvents().all()
  await expect
    .poll(async () => (await events()).find((event) => event.type === 'McpServerUpdate'))
    .toMatchObject({ server: 'broken' })
})

test('a limit ends the run, a prompt of the program replaces that of the server, and a session keeps what is fixed', async () => {
  const options = { ...stage.options, tools: ['Bash'], maxSteps: 1, systemPrompt: 'You are a clock.' }
  const { sessionId, stopReason } = await run({ prompt: 'call Bash {"command": "true"}', options })
  expect(stopReason).toBe('iteration_limit')
  expect(JSON.stringify(stage.model.requests.at(-1))).toContain('"You are a clock.')
  const resumed = { ...stage.options, resume: sessionId }
  const changed = await run({ prompt: 'hello', options: { ...resumed, maxSteps: 4, llm: { temperature: 1 } } })
  expect(changed.stopReason).toBe('completed')
  expect(await server.client.conversation(sessionId).get()).toMatchObject({
    max_iteration_per_run: 4,
    llm_config: { temperature: 1 },
  })
  const fixed = { systemPrompt: 'other', settingSources: [], conversation: {}, generateTitle: true }
  for (const [name, value] of Object.entries(fixed))
    await expect(run({ prompt: 'x', options: { ...resumed, [name]: value } })).rejects.toThrow(
      `${name}: a session keeps`,
    )
})

test('settings that a session can change are changed when it is continued', async () => {
  const { sessionId } = await run({ prompt: 'hello', options: { ...stage.options, tools: ['Bash', 'Task'] } })
  const agents = { counter: { description: 'Counts.', prompt: 'Count.' } }
  const mcpServers = { broken: { command: '/nowhere/at-all' } }
  const changed = { ...stage.options, resume: sessionId, maxTokens: 9000, agents, mcpServers }
  await run({ prompt: 'hello', options: changed })
  const view = await server.client.conversation(sessionId).get()
  expect(view).toMatchObject({ max_tokens_per_run: 9000, agents, mcp: { mcpServers } })
})

test('names of the Claude Agent SDK with the same meaning are understood', async () => {
  const schema = { type: 'object', required: ['n'] }
  const helper = { description: 'Counts.', prompt: 'Count.', maxTurns: 3, permissionMode: 'dontAsk' } as const
  const named: QueryOptions = {
    ...stage.options,
    maxTurns: 7,
    effort: 'low',
    fallbackModel: 'small',
    permissionMode: 'acceptEdits',
    outputFormat: { type: 'json_schema', schema },
    agents: { helper },
  }
  const { sessionId, structuredOutput } = await run({ prompt: '{"n": 1}', options: named })
  expect(structuredOutput).toEqual({ n: 1 })
  const session = () => server.client.conversation(sessionId).get()
  expect(await session()).toMatchObject({
    max_iteration_per_run: 7,
    llm_config: { reasoning_effort: 'low', fallback_models: ['small'] },
    agents: { helper: { max_steps: 3, permission_mode: 'deny' } },
    state: { permission_mode: 'accept_edits' },
  })
  const copy = await run({ prompt: 'hello', options: { ...stage.options, resume: sessionId, forkSession: true } })
  expect(copy.sessionId).not.toBe(sessionId)
  const asking = query({ prompt: 'hello', options: { ...stage.options, resume: sessionId } })
  await asking.next()
  await asking.setPermissionMode('bypassPermissions')
  for await (const _ of asking);
  expect((await session()).state.permission_mode).toBe('bypass')
})

test('options that are undefined are absent', async () => {
  const absent = Object.fromEntries(Object.keys(ALL).map((name) => [name, undefined]))
  const { stopReason } = await run({ prompt: 'hello', options: { ...absent, ...stage.options } })
  expect(stopReason).toBe('completed')
})
