/** Subagents, through HTTP only: every call has exactly one result, and every run one `Result` of the main agent. */
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { ScriptedQuestion, ScriptedTurn } from '../../src/llm/scripted/script.ts'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { userTexts } from '../support/chat-requests.ts'
import { until } from '../support/until.ts'
import { decisionsFor } from '../support/answering-over-http.ts'
import { answer, approve, requestsOf } from './requests.ts'

type Events = Awaited<ReturnType<Stage['events']>>
type Plan = Record<string, readonly ScriptedTurn[]>

/** Turns by the first message of an agent: `main` for the conversation. A later message adds its turns. */
let plan: Plan = {}
const seen: ScriptedQuestion[] = []

function script(question: ScriptedQuestion): ScriptedTurn {
  seen.push(question)
  const said = question.messages.findLast(
    ({ role, content }) => role === 'user' && JSON.stringify(content) !== '"Continue."',
  )
  const fitting = Object.keys(plan).filter((each) => JSON.stringify(said?.content).includes(each))
  const key = fitting.toSorted((a, b) => b.length - a.length)[0]
  const since = question.messages.slice(question.messages.indexOf(said!))
  const step = since.filter(({ role }) => role === 'assistant').length
  return plan[key ?? '']?.[step] ?? { text: `nothing planned for ${JSON.stringify(said?.content)} at ${step}` }
}

const task = (prompt: string, more: object = {}) => ({
  name: 'Task',
  arguments: { description: prompt.slice(0, 20), prompt, subagent_type: 'worker', ...more },
})
const agents = { worker: { description: 'Works.', prompt: 'You are a worker.' } }

let stage: Stage
beforeAll(async () => {
  stage = await setStage(script, { env: { OPENHANDS_MAX_CONCURRENT_RUNS: '1' } })
})
afterAll(() => stage[Symbol.asyncDispose]())

const compare = (a: unknown, b: unknown) => (String(a) < String(b) ? -1 : 1)

/** Each call has one result, each run one `Result` of the main agent. */
function expectWhole(events: Events): void {
  const uses = events.filter(({ type }) => type === 'ToolUse').map((event) => event.tool_use_id)
  const results = events.filter(({ type }) => type === 'ToolResult').map((event) => event.tool_use_id)
  expect(results.toSorted(compare)).toEqual(uses.toSorted(compare))
  const starts = events.filter(({ type }) => type === 'SubagentStart').length
  const ends = events.filter((event) => event.type === 'Result' && event.parent_tool_use_id).length
  expect(ends).toBe(starts)
}

const ofMain = (events: Events, type: string) =>
  events.filter((event) => event.type === type && !event.parent_tool_use_id)
const ofSubagents = (events: Events, type: string) =>
  events.filter((event) => event.type === type && event.parent_tool_use_id)

describe('three subagents of one turn', () => {
  test('work with one slot, each with its own shell and history; a failing one is an error result', async () => {
    plan = {
      'do it all': [{ calls: [task('first job'), task('second job'), task('third job')] }, { text: 'All done.' }],
      'first job': [bash('cd /tmp && MINE=1; pwd'), bash('echo "here $PWD $MINE"'), { text: 'First is done.' }],
      'second job': [bash('echo "other $PWD $MINE"'), { text: 'Second is done.' }],
      'third job': [{ status: 401, error: { message: 'bad key' } }],
    }
    const id = await stage.create({ agents, tools: ['Bash'] })
    await stage.say(id, 'do it all')
    const all = await stage.events(id)
    expectWhole(all)
    expect(ofMain(all, 'Result')).toMatchObject([{ stop_reason: 'completed', final_text: 'All done.', steps: 2 }])
    expect(
      ofSubagents(all, 'Result')
        .map((event) => event.stop_reason)
        .toSorted(compare),
    ).toEqual(['completed', 'completed', 'error'])
    const results = ofMain(all, 'ToolResult')
    expect(results.map((event) => event.is_error).toSorted(compare)).toEqual([false, false, true])
    const good = results.filter((event) => !event.is_error)
    expect(good.map(({ output }) => output.agent_name)).toEqual(['worker', 'worker'])
    expect(JSON.stringify(ofSubagents(all, 'ToolResult'))).toContain('here /tmp 1')
    expect(JSON.stringify(ofSubagents(all, 'ToolResult'))).not.toMatch(/other \S+ 1/)
    // The history of the main agent has nothing of the subagents but the results of its calls.
    const last = seen.findLast(({ messages }) => userTexts(messages as never).includes('do it all'))!
    expect(last.text).not.toContain('second job is')
    expect(last.messages.filter(({ role }) => role === 'tool')).toHaveLength(3)
  })
})

const call = (...args: Parameters<Stage['server']['call']>) => stage.server.call(...args)
const say = (id: string, text: string) =>
  call('POST', `/conversations/${id}/messages`, { message: { role: 'user', content: text }, run: true })

const untilStatus = (id: string, ...wanted: string[]) =>
  until(wanted.join(' or '), async () => wanted.includes((await call('GET', `/conversations/${id}`)).body.status))

test('a kill in the middle leaves each call with one result, and the subagent can be continued', async () => {
  plan = {
    'long work': [{ calls: [task('part A'), task('part B')] }, { text: 'Stopped.' }],
    'part A': [bash('echo one'), bash('sleep 100')],
    'part B': [{ text: 'B is done.' }],
    'go on': [{ calls: [task('part A goes on')] }, { text: 'Whole.' }],
    'part A goes on': [{ text: 'A is done.' }],
  }
  const id = await stage.create({ agents, tools: ['Bash'] })
  await say(id, 'long work')
  // The other one ends before, or has not begun: there is one slot.
  await until('the calls of one', async () => ofSubagents(await stage.events(id), 'ToolUse').length === 2)
  await stage.server.restart('SIGKILL')
  await untilStatus(id, 'paused')
  const cut = await stage.events(id)
  expectWhole(cut)
  expect(ofMain(cut, 'Result')).toMatchObject([{ stop_reason: 'server_restart' }])
  const { agent_id, parent_tool_use_id } = cut.find(
    (event) => event.type === 'SubagentStart' && event.prompt === 'part A',
  )
  const answered = ofMain(cut, 'ToolResult').find(({ tool_use_id }) => tool_use_id === parent_tool_use_id)
  expect(answered).toMatchObject({ is_error: true, error_type: 'interrupted' })
  expect(answered.output).toContain(agent_id)

  plan['go on']![0]!.calls![0] = task('part A goes on', { resume: agent_id })
  await stage.say(id, 'go on')
  const all = await stage.events(id)
  expectWhole(all)
  expect(ofMain(all, 'ToolResult').at(-1).output).toMatchObject({ agent_id, text: 'A is done.' })
  const continued = seen.findLast(({ text }) => text.includes('part A goes on') && text.includes('You are a worker'))!
  expect(userTexts(continued.messages as never)).toContain('part A')
  expect(continued.text).toContain('echo one')
})

describe('the permissions of a subagent', () => {
  test('are those of the conversation and its own: none of them can be loosened', async () => {
    const careful = { ...agents.worker, permission_mode: 'bypass', disallowed_tools: ['Bash(touch:*)'] }
    plan = {
      'both jobs': [{ calls: [task('make files')] }, bash('touch of-main'), { text: 'Done.' }],
      'make files': [bash('touch mine'), bash('rm -rf x'), bash('echo ok'), { text: 'Made.' }],
    }
    const id = await stage.create({ agents: { worker: careful }, tools: ['Bash'], disallowed_tools: ['Bash(rm:*)'] })
    await stage.say(id, 'both jobs')
    const all = await stage.events(id)
    expectWhole(all)
    expect(ofSubagents(all, 'ToolResult').map((event) => event.error_type)).toEqual(['denied', 'denied', undefined])
    expect(ofMain(all, 'ToolResult').map(({ is_error }) => is_error)).toEqual([false, false])
  })

  test('hold for the commands of slash commands that it uses, which run in its own shell', async () => {
    const workdir = await realpath(await mkdtemp(join(tmpdir(), 'subagent-commands-')))
    onTestFinished(() => rm(workdir, { recursive: true, force: true }))
    await mkdir(join(workdir, '.claude/commands'), { recursive: true })
    await writeFile(
      join(workdir, '.claude/commands/make.md'),
      'Held: !`echo held`\nMade: !`touch made` !`echo in-$mine`',
    )
    const make = { calls: [{ name: 'SlashCommand', arguments: { command: '/make' } }] }
    plan = {
      'use a command': [{ calls: [task('only look')] }, make, { text: 'Done.' }],
      'only look': [bash('mine=sub'), make, { text: 'Looked.' }],
    }
    const hook = { type: 'command', command: 'grep agent_id | grep -q held && exit 2; exit 0' }
    const hooks = { PreToolUse: [{ matcher: 'Bash', hooks: [hook] }] }
    const project = { workdir, setting_sources: ['project'], trust_project: true, tools: 'claude', hooks }
    const id = await stage.create({ agents: { worker: { ...agents.worker, permission_mode: 'plan' } }, ...project })
    await stage.say(id, 'use a command')
    const all = await stage.events(id)
    const outputs = [...ofSubagents(all, 'ToolResult'), ...ofMain(all, 'ToolResult')].map(({ output }) => output)
    expect(outputs[1]).toMatch(/"touch made" .* has not run.* The mode is plan/)
    expect(outputs[1]).toContain('in-sub')
    expect(outputs[1]).toMatch(/"echo held" .* has not run.* A hook denies it/)
    expect(outputs.at(-1)).toContain('Held: held')
    expect(outputs.at(-1)).toMatch(/Made:  in-$/)
    expect(await readdir(workdir)).toContain('made')
  })

  test('are asked about as usual: the run waits when all subagents do, also over a restart', async () => {
    plan = {
      'two writers': [{ calls: [task('write a'), task('write b'), task('only read')] }, { text: 'Written.' }],
      'write a': [bash('touch a'), { text: 'a is there.' }],
      'write b': [bash('touch b'), { text: 'b is there.' }],
      'only read': [bash('ls'), { text: 'Read.' }],
    }
    const id = await stage.create({ agents, tools: ['Bash'], permission_mode: 'default' })
    await say(id, 'two writers')
    await untilStatus(id, 'waiting_for_confirmation')
    await stage.server.restart('SIGKILL')
    const items = await requestsOf(call, id, 'permission')
    expect(items).toHaveLength(2)
    expect(items[0]).toMatchObject({ agent_name: 'worker', payload: { tool_uses: [{ name: 'Bash' }] } })
    expect((await call('POST', `/conversations/${id}/run`)).body.error).toBe('waiting_for_confirmation')
    await approve(call, id, items[0].request_id)
    await untilStatus(id, 'waiting_for_confirmation')
    const denied = decisionsFor(items[1], { behavior: 'deny', message: 'not b' })
    await answer(call, id, items[1].request_id, denied)
    await untilStatus(id, 'idle')
    const all = await stage.events(id)
    expectWhole(all)
    expect(ofMain(all, 'Result')).toMatchObject([{ stop_reason: 'completed', final_text: 'Written.' }])
    const results = ofSubagents(all, 'ToolResult').map((event) => event.error_type)
    expect(results.toSorted(compare)).toEqual(['denied', undefined, undefined])
  })

  test('wait together with calls that clients execute, and each answer continues its subagent, also over a restart', async () => {
    const lookUp = { calls: [{ name: 'look_up', arguments: {} }] }
    plan = {
      'one of each': [{ calls: [task('look up a'), task('look up b'), task('write c')] }, { text: 'Done.' }],
      'look up a': [lookUp, { text: 'a is found.' }],
      'look up b': [lookUp, { text: 'b is found.' }],
      'write c': [bash('touch c'), { text: 'c is there.' }],
    }
    const client_tools = [{ name: 'look_up', description: '', input_schema: { type: 'object' } }]
    const tools = ['Bash', 'look_up']
    const own = { worker: { ...agents.worker, tools } }
    const id = await stage.create({
      agents: own,
      tools: ['Bash'],
      client_tools,
      permission_mode: 'default',
      permission_rules: { allow: ['look_up'] },
    })
    await say(id, 'one of each')
    await untilStatus(id, 'waiting_for_confirmation')
    await stage.server.restart('SIGKILL')
    const waiting = await requestsOf(call, id, 'client_tool')
    expect(waiting).toMatchObject([{ agent_name: 'worker' }, { agent_name: 'worker' }])
    const [permission] = await requestsOf(call, id, 'permission')
    await approve(call, id, permission.request_id)
    await untilStatus(id, 'waiting_for_client')
    await stage.server.restart('SIGTERM')
    const send = (at: number) =>
      answer(call, id, waiting[at].request_id, { kind: 'client_tool', output: `found ${at}`, is_error: false })
    expect((await send(0)).body).toMatchObject({ status: 'running', pending: 1 })
    await untilStatus(id, 'waiting_for_client')
    await send(1)
    await untilStatus(id, 'idle')
    const all = await stage.events(id)
    expectWhole(all)
    expect(ofMain(all, 'Result')).toMatchObject([{ stop_reason: 'completed', final_text: 'Done.' }])
    expect(ofSubagents(all, 'ToolResult').map(({ error_type }) => error_type)).toEqual([
      undefined,
      undefined,
      undefined,
    ])
  })

  test('are refused with the whole turn', async () => {
    plan = { 'write it': [{ calls: [task('write c')] }], 'write c': [bash('touch c')] }
    const id = await stage.create({ agents, tools: ['Bash'], permission_mode: 'default' })
    await say(id, 'write it')
    await untilStatus(id, 'waiting_for_confirmation')
    await call('POST', `/conversations/${id}/reject`, { reason: 'no' })
    const all = await stage.events(id)
    expectWhole(all)
    expect(ofMain(all, 'Result')).toMatchObject([{ stop_reason: 'rejected' }])
    expect(ofMain(all, 'ToolResult')).toMatchObject([{ error_type: 'rejected' }])
  })
})

test('a pause stops subagents and a run continues them; a pause with interrupt ends them; delete ends all', async () => {
  plan = {
    'slow job': [{ calls: [task('sleep long')] }, { text: 'Over.' }],
    'sleep long': [{ text: 'late', delay_ms: 100_000 }],
  }
  const id = await stage.create({ agents, tools: ['Bash'] })
  await say(id, 'slow job')
  await until(
    'the question',
    async () => seen.at(-1)?.text.includes('sleep long') && seen.at(-1)!.text.includes('You are a worker'),
  )
  expect((await call('POST', `/conversations/${id}/pause`)).body.status).toBe('paused')
  plan['sleep long'] = [bash('touch begun; sleep 200'), { text: 'Slept.' }]
  await call('POST', `/conversations/${id}/run`)
  const { workdir } = (await call('GET', `/conversations/${id}`)).body
  // A shell that still starts may not end in the time that a pause has for it.
  await until('the command of a subagent', async () => existsSync(join(workdir, 'begun')))
  expect((await call('POST', `/conversations/${id}/pause`, { interrupt: true })).body.status).toBe('paused')
  const all = await until('what is expected', async () => {
    const events = await stage.events(id)
    return ofMain(events, 'ToolResult').length === 1 && events
  })
  expectWhole(all)
  expect(ofMain(all, 'ToolResult')).toMatchObject([{ error_type: 'interrupted' }])
  expect(all.filter(({ type }) => type === 'SubagentStart')).toHaveLength(1)
  expect(ofMain(all, 'Result').map((event) => event.stop_reason)).toEqual(['paused', 'paused'])
  plan['again'] = plan['slow job']!
  await say(id, 'again')
  await until('calls of subagents', async () => ofSubagents(await stage.events(id), 'ToolUse').length === 2)
  expect((await call('DELETE', `/conversations/${id}`)).status).toBe(204)
})

describe('a call that names no agent', () => {
  test('is an error result that names the known ones; an invalid definition is refused by field', async () => {
    plan = { 'ask nobody': [{ calls: [task('x', { subagent_type: 'nobody' })] }, { text: 'Well.' }] }
    const id = await stage.create({ agents, tools: ['Bash'] })
    await stage.say(id, 'ask nobody')
    const [result] = ofMain(await stage.events(id), 'ToolResult')
    expect(result).toMatchObject({ is_error: true })
    expect(result.output).toContain('general-purpose, worker')
    const create = (agent: object) =>
      call('POST', '/conversations', { llm_config: { model: 'm' }, agents: { a: { ...agents.worker, ...agent } } })
    expect((await create({ tools: ['Bash', 'Nothing'] })).body.message).toContain('agents.a.tools.1')
    expect((await create({ modle: 'x' })).body.message).toContain('agents.a')
    expect((await create({ model: 'openrouter/x' })).body.message).toContain('agents.a.model')
    expect((await create({ disallowed_tools: ['Bash(('] })).status).toBe(400)
  })
})
