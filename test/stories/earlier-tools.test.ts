/** Names that tools had in earlier versions, in stored data, in files of a project and in requests. */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { bash, setStage } from '../support/agent.ts'

const write = { calls: [{ name: 'Write', arguments: { file_path: 'a', content: 'x' } }] }
const agentCall = {
  calls: [{ name: 'Task', arguments: { description: 'x', prompt: 'work', subagent_type: 'helper' } }],
}

const stage = await setStage(
  {
    replies: [
      { when: 'call bash', turns: [bash('echo ran'), { text: 'Done.' }] },
      { when: 'call write', turns: [write, { text: 'Done.' }] },
      { when: 'call a subagent', turns: [agentCall, { text: 'Done.' }] },
      { turns: [{ text: 'Done.' }] },
    ],
  },
  {},
)
afterAll(() => stage[Symbol.asyncDispose]())

const EARLIER = { Bash: 'shell_exec', Read: 'file_read', Write: 'file_write' }

/** Restarts the server, for which an earlier version has written the log of the conversation. */
async function becomeEarlier(id: string): Promise<void> {
  await stage.server.stop('SIGKILL')
  const directory = join(stage.server.dataDir, 'sessions', id)
  const log = join(directory, 'events.jsonl')
  let text = await readFile(log, 'utf8')
  for (const [name, earlier] of Object.entries(EARLIER)) text = text.replaceAll(`"${name}"`, `"${earlier}"`)
  await writeFile(log, text)
  await rm(join(directory, 'meta.json'), { force: true })
  await stage.server.restart()
}

const resultsIn = (events: any[]) => events.filter(({ type }) => type === 'ToolResult') // eslint-disable-line typescript/no-explicit-any

test('a stored conversation has the tools, the limits, the agents and the calls of today', async () => {
  const helper = { description: 'Helps.', prompt: 'Help.', tools: ['Read', 'Write'] }
  const id = await stage.create({
    tools: ['Bash', 'Read', 'Task'],
    tool_config: { Bash: { timeout_s: 7 }, Read: { max_output_chars: 2000 } },
    agents: { helper },
  })
  const before = (await stage.server.call('GET', `/conversations/${id}`)).body
  await stage.say(id, 'call bash')
  await becomeEarlier(id)
  const { body } = await stage.server.call('GET', `/conversations/${id}`)
  expect(body).toMatchObject({ tools: before.tools, tool_config: before.tool_config, agents: before.agents })
  const calls = (await stage.events(id)).filter(({ type }) => type === 'ToolUse')
  expect(calls, 'what was called is not changed').toMatchObject([
    { name: 'shell_exec', input: { command: 'echo ran' } },
  ])
  const [result] = resultsIn(await stage.say(id, 'call bash'))
  expect(result.output).toMatchObject({ stdout: 'ran\n' })
  const started = (await stage.say(id, 'call a subagent')).find(({ type }) => type === 'SubagentStart')
  expect(started.tools).toEqual(['Read'])
})

test('stored rules still deny', async () => {
  const id = await stage.create({ tools: ['Bash', 'Write'], permission_rules: { deny: ['Bash', 'Write'] } })
  await becomeEarlier(id)
  for (const prompt of ['call bash', 'call write'])
    expect(resultsIn(await stage.say(id, prompt)), prompt).toMatchObject([{ error_type: 'denied' }])
})

test('stored matchers of hooks still match', async () => {
  const command = `printf '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny"}}'`
  const hooks = { PreToolUse: [{ matcher: 'Bash', hooks: [{ type: 'command', command }] }] }
  const id = await stage.create({ tools: ['Bash', 'Write'], hooks })
  await becomeEarlier(id)
  expect(resultsIn(await stage.say(id, 'call bash'))).toMatchObject([{ error_type: 'denied' }])
  expect(resultsIn(await stage.say(id, 'call write'))).toMatchObject([{ is_error: false }])
})

test('a rule in a settings file denies the tool of today, and a pattern makes it hold for every call', async () => {
  const workdir = join(stage.server.dataDir, '../project')
  await mkdir(join(workdir, '.claude'), { recursive: true })
  const permissions = { deny: ['shell_exec(rm:*)', 'file_write', 'Agent'] }
  await writeFile(join(workdir, '.claude/settings.json'), JSON.stringify({ permissions }))
  const helper = { description: 'Helps.', prompt: 'Help.' }
  const tools = ['Bash', 'Write', 'Task']
  const id = await stage.create({ tools, agents: { helper }, workdir, setting_sources: ['project'] })
  for (const prompt of ['call bash', 'call write', 'call a subagent'])
    expect(resultsIn(await stage.say(id, prompt)), prompt).toMatchObject([{ error_type: 'denied' }])
})

test('requests may use the names, except for limits and for client tools', async () => {
  const agents = { helper: { description: 'Helps.', prompt: 'Help.', tools: ['file_read', 'Read'] } }
  const id = await stage.create({ tools: ['shell_exec', 'file_read', 'Bash', 'Task'], agents })
  expect((await stage.server.call('GET', `/conversations/${id}`)).body).toMatchObject({
    tools: ['Bash', 'Read', 'Task'],
    agents: { helper: { tools: ['Read'] } },
  })
  const create = async (fields: object) =>
    (await stage.server.call('POST', '/conversations', { llm_config: { model: 'm', api_key: 'k' }, ...fields })).body
      .message
  expect(await create({ tool_config: { shell_exec: {} } })).toContain('the fields are Bash, BashOutput, Read')
  const look = { name: 'file_read', description: '', input_schema: { type: 'object' } }
  expect(await create({ client_tools: [look] })).toContain('the server has a tool with this name')
})
