/** What one run has instead of the settings of its conversation: until its `Result`, and for nobody else. */
import { expect, test } from 'vitest'
import { PostMessage, RunRequest } from '../../src/contract/run.ts'
import type { Conversation } from '../../src/conversations/conversation.ts'
import type { Script } from '../../src/llm/scripted/script.ts'
import { createTask } from '../../src/tools/task/task.ts'
import { approvalsOf } from '../support/answering.ts'
import { setBackground } from './background-scene.ts'
import type { BenchOptions } from './fixtures.ts'
import { call, endOf, eventsOf, gate, only, say, setBench, tool, until, userText } from './fixtures.ts'

const act = tool('Act', () => ({ output: 'acted' }))
const ACTS = [{ calls: [call('Act')] }, { text: 'Done.' }]

const setActing = (fields: object, turns = [...ACTS, ...ACTS]) => {
  const opened = setBench({ tools: [act], script: turns })
  return opened.then(async (bench) => ({ bench, conversation: await bench.converse(fields) }))
}

const post = (conversation: Conversation) => conversation.post({ message: { role: 'user', content: 'go' }, run: false })

async function runWith(conversation: Conversation, options: object) {
  await post(conversation)
  return await conversation.run(RunRequest.parse(options))
}

const approve = async (conversation: Conversation) => {
  const { pending, approve: allow } = approvalsOf(conversation)
  await allow(pending().items[0]!.request_id)
}

const statusesOf = async (conversation: Conversation) => only(await eventsOf(conversation), 'StatusUpdate')

test('a mode holds for one run: the next has that of the conversation', async () => {
  const { bench, conversation } = await setActing({ permission_mode: 'bypass' })
  await using _ = bench
  const denied = await endOf(conversation, await runWith(conversation, { permission_mode: 'deny' }))
  expect(denied).toMatchObject({ stop_reason: 'completed' })
  expect(only(await eventsOf(conversation), 'ToolResult')[0]).toMatchObject({
    is_error: true,
    error_type: 'denied',
  })
  expect((await statusesOf(conversation))[0]).toMatchObject({ status: 'running', permission_mode: 'deny', version: 3 })
  expect(conversation.view().state.permission_mode).toBe('bypass')
  expect(conversation.state.settings.permission_mode).toBe('bypass')
  await say(conversation)
  expect(only(await eventsOf(conversation), 'ToolResult')[1]).toMatchObject({ is_error: false })
})

test('allowed tools hold for one run', async () => {
  const { bench, conversation } = await setActing({ permission_mode: 'deny' })
  await using _ = bench
  await endOf(conversation, await runWith(conversation, { allowed_tools: ['Act'] }))
  await say(conversation)
  expect(only(await eventsOf(conversation), 'ToolResult').map(({ is_error }) => is_error)).toEqual([false, true])
  expect(conversation.rules.current.allow).toEqual([])
})

test('a message has the options of the run that it starts, and is not stored if another run is active', async () => {
  const opened = Promise.withResolvers<void>()
  const script: Script = async ({ messages }) => {
    if (messages.at(-1)?.role !== 'tool') return { calls: [call('Act')] }
    await opened.promise
    return { text: 'Done.' }
  }
  await using bench = await setBench({ tools: [act], script })
  const conversation = await bench.converse({ permission_mode: 'bypass' })
  const message = (text: string, run_options: object, run = true) =>
    conversation.post(PostMessage.parse({ message: text, run, run_options }))
  await expect(message('no run', { max_steps: 1 }, false)).rejects.toMatchObject({ code: 'invalid_request' })
  await expect(message('no schema', { output_schema: { type: 'nonsense' } })).rejects.toMatchObject({
    code: 'invalid_request',
  })
  const { run_id } = await message('first', { permission_mode: 'deny' })
  await expect.poll(async () => only(await eventsOf(conversation), 'ToolResult')).toHaveLength(1)
  await expect(message('second', { max_steps: 1 })).rejects.toMatchObject({ code: 'already_running' })
  opened.resolve()
  await endOf(conversation, run_id!)
  const events = await eventsOf(conversation)
  expect(only(events, 'ToolResult')).toMatchObject([{ error_type: 'denied' }])
  expect(only(events, 'UserMessage')).toMatchObject([{ run_id, content: [{ text: 'first' }] }])
})

test('a run that waits for a decision keeps its mode over a restart, also when another client answers', async () => {
  const turns = [{ calls: [call('Act'), call('Act')] }, { calls: [call('Act')] }, { text: 'Done.' }]
  const { bench, conversation } = await setActing({ permission_mode: 'bypass' }, turns)
  await using _ = bench
  const runId = await runWith(conversation, { permission_mode: 'default' })
  await until(conversation, 'RequestOpened')
  expect(conversation.view().state.permission_mode).toBe('default')
  await bench.restart()
  const again = await bench.manager.open(conversation.id)
  await approve(again)
  await expect.poll(() => again.state.status).toBe('waiting_for_confirmation')
  await approve(again)
  expect(await endOf(again, runId)).toMatchObject({ stop_reason: 'completed' })
  expect(only(await eventsOf(again), 'RequestOpened')).toHaveLength(2)
})

test('a run that a restart cut off is resumed with what it had', async () => {
  const slow = gate('Slow')
  const script = [{ calls: [call('Slow')] }, ...ACTS]
  await using bench = await setBench({ tools: [slow.tool, act], script })
  const conversation = await bench.converse({ permission_mode: 'bypass', resume_on_start: true })
  await runWith(conversation, { permission_mode: 'deny', allowed_tools: ['Slow'] })
  await slow.entered
  await bench.restart()
  const again = await bench.manager.open(conversation.id)
  await expect.poll(() => again.state.status).toBe('idle')
  const runs = (await statusesOf(again)).filter(({ permission_mode }) => permission_mode !== undefined)
  expect(runs).toMatchObject([
    { permission_mode: 'deny', allowed_tools: ['Slow'] },
    { permission_mode: 'deny', allowed_tools: ['Slow'] },
  ])
  expect(only(await eventsOf(again), 'ToolResult').at(-1)).toMatchObject({ is_error: true, error_type: 'denied' })
})

test('a run that a restart cut off is resumed without the rules in which there is a secret since', async () => {
  const slow = gate('Slow')
  await using bench = await setBench({ tools: [slow.tool], script: [{ calls: [call('Slow')] }, { text: 'Done.' }] })
  const conversation = await bench.converse({ resume_on_start: true })
  await runWith(conversation, { allowed_tools: ['Slow', 'Bash(deploy to-staging)'] })
  await slow.entered
  await conversation.secrets.put({ STAGE: 'to-staging' })
  await bench.restart({ kill: true })
  const again = await bench.manager.open(conversation.id)
  await expect.poll(() => again.state.status).toBe('idle')
  expect((await statusesOf(again)).at(-2)).toMatchObject({ status: 'running', allowed_tools: ['Slow'] })
})

test.each([
  ['the mode', (conversation: Conversation) => conversation.configure({ permission_mode: 'deny' })],
  ['the rules', (conversation: Conversation) => conversation.rules.replace({ allow: [], ask: ['Act'], deny: [] })],
])('a later change of %s takes precedence, also during the run', async (what, change) => {
  const slow = gate('Slow')
  await using bench = await setBench({
    tools: [slow.tool, act],
    script: [{ calls: [call('Slow'), call('Act')] }, { text: 'Done.' }],
  })
  const conversation = await bench.converse({ permission_mode: 'deny' })
  const runId = await runWith(conversation, { permission_mode: 'bypass', allowed_tools: ['Act'] })
  await slow.entered
  await change(conversation)
  slow.open()
  expect(await endOf(conversation, runId), what).toMatchObject({ stop_reason: 'completed' })
  const results = only(await eventsOf(conversation), 'ToolResult')
  expect(results.map(({ is_error }) => is_error)).toEqual([false, true])
})

test('another model of the same endpoint answers one run; one of another endpoint is refused', async () => {
  await using bench = await setBench({ script: [{ text: 'One.' }, { text: 'Two.' }] })
  const conversation = await bench.converse()
  await endOf(conversation, await runWith(conversation, { model: 'other' }))
  await say(conversation)
  expect(bench.model.requests.map(({ body }) => body['model'])).toEqual(['other', 'scripted'])
  expect(only(await eventsOf(conversation), 'AssistantMessage').map(({ model }) => model)).toEqual([
    'other',
    'scripted',
  ])
  expect(conversation.view().llm_config.model).toBe('scripted')
})

test('a model of another endpoint, and what is not a rule, are refused before a run begins', async () => {
  await using bench = await setBench({ script: [] })
  const conversation = await bench.converse({ llm_config: { model: 'gpt-5', api_key: 'sk-1' } })
  const refused = { code: 'invalid_request', message: expect.stringContaining('is of another endpoint') }
  await expect(conversation.run({ model: 'anthropic/claude-sonnet-4-5' })).rejects.toMatchObject(refused)
  await expect(conversation.run({ allowed_tools: ['mcp__a b'] })).rejects.toMatchObject({ code: 'invalid_request' })
  expect(await statusesOf(conversation)).toEqual([])
})

test('a subagent in the background, and the run that reads its result, get no more rights when the run has ended', async () => {
  const slow = gate('Slow')
  const start = { description: 'x', prompt: 'be quick', subagent_type: 'worker', run_in_background: true }
  const script: Script = ({ text }) => {
    if (text.includes('You are a worker'))
      return text.includes('may change something') ? { text: 'It ran.' } : { calls: [call('Slow'), call('Act')] }
    if (text.includes('It ran.'))
      return text.includes('may change something') ? { text: 'Done.' } : { calls: [call('Act')] }
    return text.includes('works in the background. A message') ? { text: 'Begun.' } : { calls: [call('Task', start)] }
  }
  const deps: BenchOptions['deps'] = {
    createTools: (names, { subagents }) => [act, slow.tool, ...(names.includes('Task') ? [createTask(subagents)] : [])],
  }
  await using bench = await setBench({ deps, script })
  const agents = { worker: { description: 'Works.', prompt: 'You are a worker.' } }
  const conversation = await bench.converse({ agents, permission_mode: 'bypass', allowed_tools: ['Slow', 'Task'] })
  const options = { permission_mode: 'deny' }
  expect(await endOf(conversation, await runWith(conversation, options))).toMatchObject({ final_text: 'Begun.' })
  await slow.entered
  slow.open()
  const resultsOf = async () => only(await eventsOf(conversation), 'ToolResult').filter(({ error_type }) => error_type)
  await expect.poll(resultsOf).toMatchObject([{ error_type: 'denied' }, { error_type: 'denied' }])
  expect(only(await eventsOf(conversation), 'SubagentStart')[0]).toMatchObject({ permission_mode: 'deny' })
})

test.each([
  [
    'a change of the rules',
    (conversation: Conversation) => conversation.rules.replace({ allow: ['Other'], ask: [], deny: [] }),
  ],
  ['a change of the model', (conversation: Conversation) => conversation.configure({ llm_config: { model: 'other' } })],
])('%s does not end a mode that allows less than the conversation', async (_what, change) => {
  const slow = gate('Slow')
  await using bench = await setBench({
    tools: [slow.tool, act],
    script: [{ calls: [call('Slow'), call('Act')] }, { text: 'Done.' }],
  })
  const conversation = await bench.converse({ permission_mode: 'bypass', allowed_tools: ['Slow'] })
  const runId = await runWith(conversation, { permission_mode: 'deny' })
  await slow.entered
  await change(conversation)
  slow.open()
  expect(await endOf(conversation, runId)).toMatchObject({ stop_reason: 'completed' })
  expect(only(await eventsOf(conversation), 'ToolResult').at(-1)).toMatchObject({ error_type: 'denied' })
})

/** Returns the modes of the runs. Between the first and the second, `between` happens. */
async function modesOfRuns(options: object, between: (conversation: Conversation) => Promise<unknown>) {
  await using scene = await setBackground()
  const { conversation, slow } = scene
  await endOf(conversation, await runWith(conversation, options))
  await slow.entered
  await between(conversation)
  slow.open()
  const runs = async () => (await statusesOf(conversation)).filter(({ status }) => status === 'running')
  await expect.poll(async () => (await runs()).length).toBe(2)
  return (await runs()).map(({ reason, permission_mode, allowed_tools }) => [reason, permission_mode, allowed_tools])
}

test('a run that follows by itself has the rights of the run before, unless somebody has written since', async () => {
  const options = { permission_mode: 'bypass', allowed_tools: ['Act'] }
  const given = ['bypass', ['Act']]
  expect(await modesOfRuns(options, async () => {})).toEqual([
    ['run', ...given],
    ['subagent', ...given],
  ])
  expect(await modesOfRuns(options, post)).toEqual([
    ['run', ...given],
    ['subagent', undefined, undefined],
  ])
  const denied = [
    ['run', 'deny', undefined],
    ['subagent', 'deny', undefined],
  ]
  expect(await modesOfRuns({ permission_mode: 'deny' }, post)).toEqual(denied)
})

test('a subagent in the background of another run gets neither the rights nor the model of a run', async () => {
  const [slow, long] = [gate('Slow'), gate('Long')]
  const start = { description: 'x', prompt: 'be quick', subagent_type: 'worker', run_in_background: true }
  const script: Script = ({ text }) => {
    if (text.includes('You are a worker'))
      return text.includes('slow is over') ? { calls: [call('Act')] } : { calls: [call('Slow')] }
    if (text.includes('more work')) return text.includes('long is over') ? { text: 'Done.' } : { calls: [call('Long')] }
    return text.includes('works in the background. A message') ? { text: 'Begun.' } : { calls: [call('Task', start)] }
  }
  const deps: BenchOptions['deps'] = {
    createTools: (names, { subagents }) => [
      act,
      slow.tool,
      long.tool,
      ...(names.includes('Task') ? [createTask(subagents)] : []),
    ],
  }
  await using bench = await setBench({ deps, script })
  const agents = { worker: { description: 'Works.', prompt: 'You are a worker.' } }
  const conversation = await bench.converse({ agents, permission_mode: 'default', allowed_tools: ['Slow', 'Task'] })
  await say(conversation)
  await slow.entered
  await conversation.post(userText('more work', false))
  const runId = await conversation.run({ permission_mode: 'bypass', allowed_tools: ['Act'], model: 'other' })
  await long.entered
  slow.open('slow is over')
  const asked = await until(conversation, 'RequestOpened')
  expect(asked).toMatchObject({ agent_name: 'worker' })
  expect(conversation.view().state.permission_mode).toBe('bypass')
  long.open('long is over')
  expect(await endOf(conversation, runId)).toMatchObject({ final_text: 'Done.' })
  const models = only(await eventsOf(conversation), 'AssistantMessage').map(({ agent_name, model }) => [
    agent_name,
    model,
  ])
  expect(new Set(models.filter(([agent]) => agent === 'worker').map(([, model]) => model))).toEqual(
    new Set(['scripted']),
  )
})

test('a run that reads the result of a subagent of an earlier run does not have the rights of a later one', async () => {
  await using scene = await setBackground()
  const { conversation, slow } = scene
  await say(conversation)
  await slow.entered
  await endOf(conversation, await runWith(conversation, { permission_mode: 'bypass' }))
  slow.open()
  const last = async () => (await statusesOf(conversation)).findLast(({ status }) => status === 'running')
  await expect.poll(async () => (await last())?.reason).toBe('subagent')
  expect(await last()).not.toHaveProperty('permission_mode')
})
