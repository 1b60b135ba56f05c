/** Hostile models and hooks around subagents, through HTTP only. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { createPlanner, expectWhole, ofMain, ofSubagents, task } from '../support/subagents.ts'
import { until } from '../support/until.ts'

const planner = createPlanner()
const agents = { worker: { description: 'Works.', prompt: 'You are a worker.' } }

let stage: Stage
beforeAll(async () => {
  stage = await setStage(planner.script, { env: { OPENHANDS_MAX_CONCURRENT_RUNS: '1' } })
})
afterAll(() => stage[Symbol.asyncDispose]())

test('a storm of calls ends: a few work, and the others are errors', async () => {
  const storm = Array.from({ length: 100 }, (_, at) => task(`small ${at}`, { run_in_background: at % 10 === 9 }))
  planner.plan = { 'all at once': [{ calls: storm }, { text: 'Survived.' }], small: [{ text: 'Small result.' }] }
  planner.plan['Small result.'] = Array.from({ length: 100 }, () => ({ text: 'Read.' }))
  const id = await stage.create({ agents, tools: ['Bash'] })
  await stage.say(id, 'all at once')
  await expect
    .poll(async () => (await stage.events(id)).filter(({ type }) => type === 'SubagentStart').length)
    .toBeGreaterThan(0)
  await stage.server.call('POST', `/conversations/${id}/pause`, { interrupt: true })
  // Calls that end slowly get their results later than the pause its answer.
  const all = await until('the end of all calls', async () => {
    const events = await stage.events(id)
    const count = (type: string) => events.filter((event) => event.type === type).length
    const areOver = ofSubagents(events, 'Result').length === count('SubagentStart')
    return areOver && count('ToolResult') === count('ToolUse') && events
  })
  expectWhole(all)
  expect(ofMain(all, 'ToolResult')).toHaveLength(100)
  expect(ofMain(all, 'ToolResult').filter((event) => event.is_error).length).toBeGreaterThan(0)
})

test('garbage, an unknown and a foreign agent_id, and a nested call in the background are error results', async () => {
  const other = await stage.create({ agents, tools: ['Bash'] })
  planner.plan = { 'make one': [{ calls: [task('tiny')] }, { text: 'Made.' }], tiny: [{ text: 'Tiny.' }] }
  await stage.say(other, 'make one')
  const { agent_id: foreign } = (await stage.events(other)).find(({ type }) => type === 'SubagentStart')
  const nested = { ...agents.worker, tools: ['Task', 'Bash'] }
  const calls = [
    { name: 'Task', arguments: 'not json' },
    { name: 'Task', arguments: { prompt: 7 } },
    task('x', { resume: foreign }),
    task('x', { resume: 'nobody' }),
    task('deeper'),
  ]
  planner.plan = {
    'try all': [{ calls }, { text: 'Tried.' }],
    deeper: [{ calls: [task('deepest', { run_in_background: true })] }, { text: 'It was refused.' }],
  }
  const id = await stage.create({ agents: { worker: nested }, tools: ['Bash'], subagent_limits: { max_depth: 2 } })
  await stage.say(id, 'try all')
  const all = await stage.events(id)
  expectWhole(all)
  expect(ofMain(all, 'ToolResult').map((event) => event.is_error)).toEqual([true, true, true, true, false])
  expect(ofSubagents(all, 'ToolResult')).toMatchObject([{ is_error: true }])
  expect(JSON.stringify(ofSubagents(all, 'ToolResult'))).toContain('Only the main agent')
})

test('the same subagent twice in one turn works once at a time', async () => {
  planner.plan = { 'make one': [{ calls: [task('tiny')] }, { text: 'Made.' }], tiny: [{ text: 'Tiny.' }] }
  const id = await stage.create({ agents, tools: ['Bash'] })
  await stage.say(id, 'make one')
  const { agent_id: resume } = (await stage.events(id)).find(({ type }) => type === 'SubagentStart')
  planner.plan = {
    twice: [{ calls: [task('more work', { resume }), task('more work', { resume })] }, { text: 'Done.' }],
    'more work': [bash('echo worked'), { text: 'More.' }],
  }
  await stage.say(id, 'twice')
  const all = await stage.events(id)
  expectWhole(all)
  expect(ofMain(all, 'Result')).toHaveLength(2)
})

test('a hook that answers continue: false in a subagent ends all subagents and the run', async () => {
  planner.plan = {
    'three at work': [{ calls: [task('stop me'), task('sleep long')] }, { text: 'Never.' }],
    'stop me': [bash('echo forbidden'), { text: 'Never.' }],
    'sleep long': [bash('sleep 100'), { text: 'Never.' }],
  }
  const command = `grep -q forbidden && echo '{"continue": false, "stopReason": "enough"}' || true`
  const hooks = { PreToolUse: [{ matcher: 'Bash', hooks: [{ type: 'command', command }] }] }
  const id = await stage.create({ agents, tools: ['Bash'], hooks })
  await stage.say(id, 'three at work')
  const all = await stage.events(id)
  expectWhole(all)
  expect(ofMain(all, 'Result')).toMatchObject([{ stop_reason: 'hook' }])
  const ends = ofSubagents(all, 'Result').map((event) => event.stop_reason)
  expect(ends.toSorted((a, b) => (a < b ? -1 : 1))).toEqual(['cancelled', 'hook'])
})
