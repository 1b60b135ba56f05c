/** What subagents share with the main agent, through HTTP only: hooks, costs, limits, tools, transient events and compaction. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ScriptedQuestion, ScriptedTurn } from '../../src/llm/scripted/script.ts'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { asksForSummary } from '../support/chat-requests.ts'
import { PATIENCE_MS } from '../support/patience.ts'
import { subscribe } from '../support/stream.ts'
import { until } from '../support/until.ts'
import { createPlanner, expectWhole, ofMain, ofSubagents, task } from '../support/subagents.ts'
import { answer, requestsOf } from './requests.ts'

const ROOT = join(import.meta.dirname, '../..')
const CHILDREN = join(ROOT, 'test/mcp/children')
const WINDOW = 8000

const planner = createPlanner()
const worker = { description: 'Works.', prompt: 'You are a worker.' }
const agents = { worker }

/** Answers of the subagent with the large work: after a compaction they cannot be counted in its history. */
const large = { done: 0, longest: 0 }

function script(question: ScriptedQuestion): ScriptedTurn | Promise<ScriptedTurn> {
  const { text } = question
  if (!text.includes('the large work') || !text.includes(worker.prompt)) return planner.script(question)
  large.longest = Math.max(large.longest, text.length / 4)
  if (asksForSummary(question)) return { text: 'Summary: half of the large work is done.' }
  return ++large.done > 12 ? { text: 'All large.' } : bash('head -c 3000 /dev/zero | tr "\\\\0" x')
}

let stage: Stage
beforeAll(async () => {
  stage = await setStage(script, {
    env: { OPENHANDS_SANDBOX_READABLE: [join(ROOT, 'node_modules'), CHILDREN].join(':') },
  })
})
afterAll(() => stage[Symbol.asyncDispose]())

const call = (...args: Parameters<Stage['server']['call']>) => stage.server.call(...args)
const create = (fields: object = {}) => stage.create({ agents, tools: ['Bash'], ...fields })
const viewOf = async (id: string) => (await call('GET', `/conversations/${id}`)).body
const post = (id: string, content: string) =>
  call('POST', `/conversations/${id}/messages`, { message: { role: 'user', content }, run: true })
const poll = (look: () => Promise<unknown>) => expect.poll(look, { timeout: PATIENCE_MS, interval: 20 })
const llm = (more: object) => ({
  llm_config: { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key', ...more },
})
const called = (name: string, input: object = {}) => ({ calls: [{ name, arguments: { ...input } }] })
const questionsOf = (...texts: string[]) =>
  planner.seen.filter((question) => texts.every((each) => question.text.includes(each)))

test('SubagentStart adds context, SubagentStop has it continue once, and payloads of its calls name the agent', async () => {
  planner.plan = {
    'hooked work': [{ calls: [task('tidy files')] }, { text: 'Done.' }],
    'tidy files': [bash('echo x'), { text: 'First end.' }, { text: 'Second end.' }],
  }
  const command = (text: string) => [{ hooks: [{ type: 'command', command: text }] }]
  const context = { hookSpecificOutput: { hookEventName: 'SubagentStart', additionalContext: 'use tabs' } }
  const id = await create({
    hooks: {
      SubagentStart: [{ matcher: 'worker', ...command(`echo '${JSON.stringify(context)}'`)[0] }],
      SubagentStop: command(`grep -q '"stop_hook_active":true' || { echo look again >&2; exit 2; }`),
      PreToolUse: [{ matcher: 'Bash', ...command('cat > "$CLAUDE_PROJECT_DIR/payload.json"')[0] }],
    },
  })
  await stage.say(id, 'hooked work')
  const all = await stage.events(id)
  expectWhole(all)
  expect(ofSubagents(all, 'Result')).toMatchObject([{ final_text: 'Second end.', steps: 3 }])
  const [first, , last] = questionsOf('tidy files', worker.prompt)
  expect(first!.text).toContain('use tabs')
  expect(last!.text).toContain('look again')
  expect(questionsOf('hooked work').some(({ text }) => /use tabs|look again/.test(text))).toBe(false)
  const { agent_id } = all.find(({ type }) => type === 'SubagentStart')
  const payload = JSON.parse(await readFile(join((await viewOf(id)).workdir, 'payload.json'), 'utf8'))
  expect(payload).toMatchObject({ tool_name: 'Bash', agent_id, agent_type: 'worker' })
})

test('usage and costs of all agents add up, and the budget ends all of them', async () => {
  const usage = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 }
  const priced = llm({ input_cost_per_token: 0.001, output_cost_per_token: 0.001 })
  planner.plan = {
    'paid work': [
      { calls: [task('paid part')], usage },
      { text: 'Paid.', usage },
    ],
    'paid part': [
      { ...bash('true'), usage },
      { text: 'Part.', usage },
    ],
  }
  const id = await create(priced)
  await stage.say(id, 'paid work')
  const all = await stage.events(id)
  expect(ofSubagents(all, 'Result')[0].cost_usd).toBeCloseTo(0.22)
  expect(ofMain(all, 'Result')[0].cost_usd).toBeCloseTo(0.44)
  expect(ofMain(all, 'Result')[0].usage.scripted).toMatchObject({ input_tokens: 400, output_tokens: 40 })
  expect((await viewOf(id)).cost_usd).toBeCloseTo(0.44)

  planner.plan['paid part'] = Array.from({ length: 9 }, () => ({ ...bash('true'), usage }))
  const poor = await create({ ...priced, max_budget_usd: 0.3 })
  await stage.say(poor, 'paid work')
  const ended = await stage.events(poor)
  expectWhole(ended)
  expect(ended.filter(({ type }) => type === 'AssistantMessage')).toHaveLength(3)
  expect(ended.filter(({ type }) => type === 'Result').map((event) => event.stop_reason)).toEqual([
    'budget_limit',
    'budget_limit',
  ])
})

test('subagents in the background that start each other wake the agent 20 times, and then wait for the user', async () => {
  const link = task('small link', { run_in_background: true })
  const id = await create()
  // An end that comes while the agent works wakes nobody.
  const endAtRest = async () => {
    await until('the rest of the agent', async () => (await viewOf(id)).status === 'idle')
    return { text: 'Link is done.' }
  }
  planner.plan = {
    'begin chain': [{ calls: [link] }, { text: 'Begun.' }],
    'small link': [endAtRest],
    'Link is done.': [{ calls: [link] }, { text: 'One more.' }],
    'how far': [{ text: 'Far.' }],
  }
  await post(id, 'begin chain')
  await poll(async () => {
    const all = await stage.events(id)
    return [ofMain(all, 'Result').length, all.at(-1).background_agent_id !== undefined]
  }).toEqual([21, true])
  expect((await viewOf(id)).status).toBe('idle')
  await stage.say(id, 'how far')
  const all = await stage.events(id)
  expectWhole(all)
  const held = all.filter(({ waits_for_user }) => waits_for_user)
  expect(held.map(({ seq }) => seq)).toEqual([ofSubagents(all, 'Result').at(-1).seq])
  const ends = ofSubagents(all, 'Result').map((event) => event.background_agent_id)
  const { text } = questionsOf('how far').at(-1)!
  for (const agentId of ends) expect(text).toContain(`[agent_id: ${agentId}]`)
})

test('PUT config: another limit admits those that wait, other agents are there at the next call, and deltas name their agent', async () => {
  planner.plan = {
    'two parts': [{ calls: [task('wait for it'), task('make it')] }, { text: 'Both.' }],
    'wait for it': [bash('echo waiting; while [ ! -e it ]; do sleep 0.02; done'), { text: 'It is there.' }],
    'make it': [bash('echo waiting; while [ ! -e it ]; do sleep 0.02; done'), { text: 'Made.' }],
    'paint it': [{ calls: [task('paint', { subagent_type: 'painter' })] }, { text: 'Painted.' }],
    paint: [{ text: 'Blue.' }],
  }
  const id = await create({ subagent_limits: { max_concurrent: 1 } })
  const stream = await subscribe(stage.server.url, `/conversations/${id}/events/stream?deltas=true`)
  await post(id, 'two parts')
  const { data: output } = await stream.until(({ event }) => event === 'ToolOutputDelta')
  const starts = (await stage.events(id)).filter(({ type }) => type === 'SubagentStart')
  expect(output).toMatchObject({ agent_name: 'worker', parent_tool_use_id: expect.any(String) })
  expect(starts.map((event) => event.parent_tool_use_id)).toContain(output.parent_tool_use_id)
  const painter = { description: 'Paints.', prompt: 'You paint.' }
  const update = { subagent_limits: { max_concurrent: 2 }, agents: { painter } }
  expect((await call('PUT', `/conversations/${id}/config`, update)).status).toBe(200)
  // Both work now: nobody has made the file yet.
  await poll(async () => ofSubagents(await stage.events(id), 'ToolUse').length).toBe(2)
  await writeFile(join((await viewOf(id)).workdir, 'it'), '')
  await stream.until(({ event, data }) => event === 'Result' && !data.parent_tool_use_id)
  const deltas = stream.frames.filter(({ event }) => event === 'AssistantDelta').map(({ data }) => data)
  stream.close()
  expect(deltas.map((each) => each.agent_name)).toContain('worker')
  for (const each of deltas) expect(each.agent_name === undefined).toBe(each.parent_tool_use_id === undefined)

  await stage.say(id, 'paint it')
  expect(questionsOf('paint it').at(-1)!.text).toContain('- painter: Paints.')
  expect(ofMain(await stage.events(id), 'ToolResult').at(-1).output).toMatchObject({
    agent_name: 'painter',
    text: 'Blue.',
  })
})

test('PUT config of agents warns where no tool can call them', async () => {
  const id = await stage.create({ tools: ['Bash'] })
  const { status, body } = await call('PUT', `/conversations/${id}/config`, { agents })
  expect([status, body.warnings]).toEqual([200, [expect.stringContaining('no tool Task')]])
})

test('a subagent calls a tool of the client, and one of an MCP server', async () => {
  planner.plan = {
    'ask others': [{ calls: [task('order 17')] }, { text: 'Asked.' }],
    'order 17': [called('look_up', { number: '17' }), called('mcp__odd__echo'), { text: 'Shipped.' }],
  }
  const look_up = { name: 'look_up', description: 'Returns an order.', input_schema: { type: 'object' } }
  const id = await create({
    agents: { worker: { ...worker, tools: ['look_up', 'mcp__odd'] } },
    client_tools: [look_up],
    mcp: { mcpServers: { odd: { command: process.execPath, args: [join(CHILDREN, 'odd-server.ts')] } } },
  })
  await post(id, 'ask others')
  const waiting = () => requestsOf(call, id, 'client_tool')
  await poll(waiting).toHaveLength(1)
  const [{ request_id, ...request }] = await waiting()
  expect(request).toMatchObject({ agent_name: 'worker', payload: { name: 'look_up', input: { number: '17' } } })
  // A run waits for a slow server for some seconds only.
  await poll(async () => (await call('GET', `/conversations/${id}/mcp`)).body.items).toMatchObject([
    { status: 'connected' },
  ])
  await answer(call, id, request_id, { kind: 'client_tool', output: 'on its way', is_error: false })
  await poll(async () => ofMain(await stage.events(id), 'Result').length).toBe(1)
  const all = await stage.events(id)
  expectWhole(all)
  expect(ofSubagents(all, 'ToolResult')).toMatchObject([{ output: 'on its way' }, { is_error: false }])
  expect(all.find(({ type }) => type === 'RequestOpened')).toMatchObject({ kind: 'client_tool', agent_name: 'worker' })
})

test('subagents of subagents: with max_depth 2 those of the second level have none', async () => {
  const boss = { description: 'Delegates.', prompt: 'You delegate.', tools: ['Task', 'Bash'] }
  planner.plan = {
    'big plan': [{ calls: [task('middle part', { subagent_type: 'boss' })] }, { text: 'Big done.' }],
    'middle part': [{ calls: [task('lowest part', { subagent_type: 'boss' })] }, { text: 'Middle done.' }],
    'lowest part': [{ calls: [task('even lower')] }, { text: 'Lowest done.' }],
  }
  const id = await create({ agents: { worker, boss }, subagent_limits: { max_depth: 2 } })
  await stage.say(id, 'big plan')
  const all = await stage.events(id)
  expectWhole(all)
  const [middle, lowest] = all.filter(({ type }) => type === 'SubagentStart')
  expect([middle.tools, lowest.tools]).toEqual([['Task', 'Bash'], ['Bash']])
  const inMiddle = all.filter((event) => event.parent_tool_use_id === middle.parent_tool_use_id)
  expect(ofMain(inMiddle, 'ToolUse')).toEqual([])
  expect(inMiddle.find(({ type }) => type === 'ToolResult')).toMatchObject({
    tool_use_id: lowest.parent_tool_use_id,
    output: { text: 'Lowest done.' },
  })
  const inLowest = all.filter((event) => event.parent_tool_use_id === lowest.parent_tool_use_id)
  expect(inLowest.find(({ type }) => type === 'ToolResult')).toMatchObject({ is_error: true })
  expect(ofMain(all, 'ToolResult')).toMatchObject([{ output: { text: 'Middle done.' } }])
})

test('the history of a subagent is compacted, and that of the main agent is not', async () => {
  planner.plan = { 'delegate it all': [{ calls: [task('the large work')] }, { text: 'Delegated.' }] }
  const id = await create(llm({ context_window: WINDOW }))
  await stage.say(id, 'delegate it all')
  const all = await stage.events(id)
  expectWhole(all)
  expect(ofMain(all, 'Condensation')).toEqual([])
  expect(ofSubagents(all, 'Condensation').length).toBeGreaterThan(0)
  expect(large.longest).toBeLessThanOrEqual(WINDOW)
  expect(ofSubagents(all, 'Result')).toMatchObject([{ stop_reason: 'completed', final_text: 'All large.' }])
  expect(ofMain(all, 'Result')).toMatchObject([{ final_text: 'Delegated.' }])
})

test('an agent of .claude/agents is listed and can be called', async () => {
  planner.plan = {
    'call the file': [{ calls: [task('from a file', { subagent_type: 'filed' })] }, { text: 'Called.' }],
    'from a file': [{ text: 'I am of a file.' }],
  }
  const workdir = join(stage.server.home, 'project')
  await mkdir(join(workdir, '.claude/agents'), { recursive: true })
  const file = '---\nname: filed\ndescription: Comes from a file.\ntools: Bash\n---\nYou are filed away.\n'
  await writeFile(join(workdir, '.claude/agents/filed.md'), file)
  const id = await stage.create({ workdir, setting_sources: ['project'], trust_project: true, tools: ['Bash'] })
  const { body } = await call('GET', `/conversations/${id}/agent-info`)
  expect(body.agents).toContainEqual(expect.objectContaining({ name: 'filed', origin: 'project', tools: ['Bash'] }))
  await stage.say(id, 'call the file')
  const [{ output }] = ofMain(await stage.events(id), 'ToolResult')
  expect(output).toMatchObject({ agent_name: 'filed', text: 'I am of a file.' })
  expect(questionsOf('from a file', 'You are filed away.')).toHaveLength(1)
})

test('a run that fails is not followed by another one because a subagent in the background has ended', async () => {
  planner.plan = {
    'fail later': [
      { calls: [task('be quick', { run_in_background: true })] },
      { status: 401, error: { message: 'bad key' }, delay_ms: 300 },
    ],
    'be quick': [{ text: 'Quick.' }],
    'what now': [{ text: 'Read it.' }],
  }
  const id = await create()
  await stage.say(id, 'fail later')
  await poll(async () => ofSubagents(await stage.events(id), 'Result').length).toBe(1)
  expect((await viewOf(id)).status).toBe('error')
  await stage.say(id, 'what now')
  expect(ofMain(await stage.events(id), 'Result').map((event) => event.stop_reason)).toEqual(['error', 'completed'])
  expect(questionsOf('what now').at(-1)!.text).toContain('Quick.')
})
