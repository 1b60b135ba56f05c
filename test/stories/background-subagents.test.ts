/** Subagents in the background, through HTTP only: each ends exactly once, and the main agent reads its result once. */
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { createPlanner, expectWhole, ofMain, ofSubagents, task } from '../support/subagents.ts'
import { until } from '../support/until.ts'
import { approve, requestsOf } from './requests.ts'

const planner = createPlanner()
const agents = { worker: { description: 'Works.', prompt: 'You are a worker.' } }
const inBackground = (prompt: string, more: object = {}) => task(prompt, { run_in_background: true, ...more })

let stage: Stage
beforeAll(async () => {
  stage = await setStage(planner.script, { env: { OPENHANDS_MAX_CONCURRENT_RUNS: '1' } })
})
afterAll(() => stage[Symbol.asyncDispose]())

const call = (...args: Parameters<Stage['server']['call']>) => stage.server.call(...args)
const create = (fields: object = {}) => stage.create({ agents, tools: ['Bash'], ...fields })

const results = async (id: string, count: number) =>
  await until('what is expected', async () => {
    const all = await stage.events(id)
    return ofMain(all, 'Result').length >= count && all
  })
const untilWorking = (id: string) =>
  until('calls of subagents', async () => ofSubagents(await stage.events(id), 'ToolUse').length > 0)
const statusOf = async (id: string) => (await call('GET', `/conversations/${id}`)).body.status
const lastQuestion = (text: string) => planner.seen.findLast((question) => question.text.includes(text))!

test('the call returns at once, the run ends, and the end of the subagent starts a run that reads it', async () => {
  planner.plan = {
    'start it': [{ calls: [inBackground('count files')] }, { text: 'It works in the background.' }],
    'count files': [bash('while [ ! -e go ]; do sleep 0.02; done'), { text: 'There are 42 files.' }],
    'There are 42 files.': [{ text: '42, says the worker.' }],
  }
  const id = await create()
  await stage.say(id, 'start it')
  expect(await statusOf(id)).toBe('idle')
  const before = await stage.events(id)
  expect(ofMain(before, 'ToolResult')[0].output).toMatchObject({ stop_reason: 'background' })
  expect(ofMain(before, 'Result')).toMatchObject([{ final_text: 'It works in the background.' }])
  await untilWorking(id)
  const { body } = await call('GET', `/conversations/${id}`)
  await writeFile(join(body.workdir, 'go'), '')
  const all = await results(id, 2)
  expectWhole(all)
  expect(ofMain(all, 'Result').at(-1)).toMatchObject({ stop_reason: 'completed', final_text: '42, says the worker.' })
  expect(ofSubagents(all, 'Result')).toMatchObject([{ final_text: 'There are 42 files.', stop_reason: 'completed' }])
})

test('a run that is active reads it at its next step', async () => {
  planner.plan = {
    'both at once': [{ calls: [inBackground('be quick')] }, { text: 'late', delay_ms: 300 }],
    'be quick': [{ text: 'Quick result.' }],
    'Quick result.': [{ text: 'Read it.' }, { text: 'Read it.' }],
  }
  const id = await create()
  await stage.say(id, 'both at once')
  const all = await until('what is expected', async () => {
    const events = await stage.events(id)
    return ofMain(events, 'Result').at(-1)?.final_text === 'Read it.' && events
  })
  expectWhole(all)
  expect(lastQuestion('Quick result.').text.split('Quick result.')).toHaveLength(2)
})

test('a pause stops it, a run continues it, and a paused conversation is not started by its end', async () => {
  planner.plan = {
    'begin it': [{ calls: [inBackground('slow steps')] }, { text: 'Begun.' }],
    'slow steps': [bash('touch one'), { text: 'late', delay_ms: 100_000 }],
    'Begun.': [{ text: 'Nothing to do.' }],
  }
  const id = await create()
  await stage.say(id, 'begin it')
  await until('the question', async () => lastQuestion('slow steps')?.text.includes('touch one'))
  expect((await call('POST', `/conversations/${id}/pause`)).body.status).toBe('paused')
  planner.plan['slow steps'] = [bash('touch one'), { text: 'Slowly done.' }]
  // The run may have asked the model before it ended.
  planner.plan['Slowly done.'] = [{ text: 'It is done.' }, { text: 'It is done.' }]
  await call('POST', `/conversations/${id}/run`)
  const all = await until('what is expected', async () => {
    const events = await stage.events(id)
    return ofMain(events, 'Result').at(-1)?.final_text === 'It is done.' && events
  })
  expectWhole(all)
  expect(ofSubagents(all, 'Result')).toHaveLength(1)

  planner.plan['slow steps'] = [bash('touch begun; sleep 100'), { text: 'Never.' }]
  await stage.say(id, 'begin it')
  const { workdir } = (await call('GET', `/conversations/${id}`)).body
  // A shell that still starts may not end in the time that a pause has for it.
  await until('the command of the subagent', async () => existsSync(join(workdir, 'begun')))
  expect((await call('POST', `/conversations/${id}/pause`, { interrupt: true })).body.status).toBe('paused')
  // A command that ends slowly gets its result later than the pause its answer.
  const ended = await until('the end of the subagent', async () => {
    const events = await stage.events(id)
    return ofSubagents(events, 'Result').length === 2 && events
  })
  expectWhole(ended)
  expect(ofSubagents(ended, 'Result').at(-1)).toMatchObject({ stop_reason: 'cancelled' })
  expect(await statusOf(id)).toBe('paused')
  await call('DELETE', `/conversations/${id}`)
})

test('a kill reports it as interrupted exactly once, and it can be continued', async () => {
  planner.plan = {
    'work behind': [{ calls: [inBackground('long work')] }, { text: 'Begun.' }],
    'long work': [bash('sleep 100'), { text: 'Never.' }],
    'what now': [],
    'go on with it': [{ text: 'Now it is done.' }],
  }
  const id = await create()
  await stage.say(id, 'work behind')
  await untilWorking(id)
  await stage.server.restart('SIGKILL')
  await until('a pause', async () => (await statusOf(id)) === 'paused')
  await stage.server.restart('SIGKILL')
  await until('a pause', async () => (await statusOf(id)) === 'paused')
  const cut = await stage.events(id)
  expectWhole(cut)
  expect(ofSubagents(cut, 'Result')).toMatchObject([{ stop_reason: 'server_restart' }])
  const { agent_id } = cut.find(({ type }) => type === 'SubagentStart')
  planner.plan['what now'] = [{ calls: [task('go on with it', { resume: agent_id })] }, { text: 'Continued.' }]
  await stage.say(id, 'what now')
  const all = await stage.events(id)
  expectWhole(all)
  expect(ofMain(all, 'ToolResult').at(-1).output).toMatchObject({ agent_id, text: 'Now it is done.' })
  expect(lastQuestion('what now').text).toContain('has ended: server_restart')
})

test('its approvals are listed while the conversation is idle, and it continues with the decision', async () => {
  planner.plan = {
    'let it ask': [{ calls: [inBackground('touch a file')] }, { text: 'It asks.' }],
    'touch a file': [bash('touch asked'), { text: 'Touched.' }],
    'Touched.': [{ text: 'Good.' }],
  }
  const id = await create({ permission_mode: 'default' })
  await stage.say(id, 'let it ask')
  const [item] = await until('what is expected', async () => {
    const items = await requestsOf(call, id, 'permission')
    return items.length > 0 && items
  })
  // A slot is free meanwhile.
  const other = await create()
  planner.plan['hello'] = [{ text: 'Hello.' }]
  await stage.say(other, 'hello')
  expect(await statusOf(id)).toBe('idle')
  await approve(call, id, item.request_id)
  const all = await until('what is expected', async () => {
    const events = await stage.events(id)
    return ofMain(events, 'Result').at(-1)?.final_text === 'Good.' && events
  })
  expectWhole(all)
})

describe('a client stops one of them', () => {
  const UNTIL_GO = [bash('while [ ! -e go ]; do sleep 0.02; done'), { text: 'All of this work is done.' }]
  const stop = (id: string, agentId: string) => call('DELETE', `/conversations/${id}/subagents/${agentId}`)

  test('it ends with its command, the agent reads that the user stopped it, and the others work on', async () => {
    planner.plan = {
      'start both': [{ calls: [inBackground('one work'), inBackground('other work')] }, { text: 'Both work.' }],
      'one work': UNTIL_GO,
      'other work': UNTIL_GO,
      'the user stopped it': [{ text: 'One was stopped.' }],
      // The run may have read the end of the first before.
      'All of this work is done.': [{ text: 'The other is done.' }, { text: 'The other is done.' }],
    }
    const id = await create()
    await stage.say(id, 'start both')
    const before = await until('a command', async () => {
      const all = await stage.events(id)
      return ofSubagents(all, 'ToolUse').length > 0 && all
    })
    const working = ofSubagents(before, 'ToolUse')[0].parent_tool_use_id
    const starts = before.filter(({ type }) => type === 'SubagentStart')
    const { agent_id } = starts.find((start) => start.parent_tool_use_id === working)
    const answers = await Promise.all([stop(id, agent_id), stop(id, agent_id)])
    const stopped = { status: 200, body: { agent_id, seq: expect.any(Number), stop_reason: 'cancelled' } }
    expect(answers).toMatchObject([stopped, stopped])
    const after = await stage.events(id)
    expect(ofSubagents(after, 'Result')).toMatchObject([{ background_agent_id: agent_id, interrupted: true }])
    expect(ofSubagents(after, 'ToolResult')[0]).toMatchObject({ error_type: 'interrupted' })

    const { body } = await call('GET', `/conversations/${id}`)
    await writeFile(join(body.workdir, 'go'), '')
    const all = await until('the other', async () => {
      const events = await stage.events(id)
      return ofMain(events, 'Result').at(-1)?.final_text === 'The other is done.' && events
    })
    expectWhole(all)
    expect(lastQuestion('All of this work is done.').text).toContain('the user stopped it')
    expect((await stop(id, agent_id)).body).toEqual(answers[0].body)
    const ofOther = starts.find((start) => start.parent_tool_use_id !== working).agent_id
    expect((await stop(id, ofOther)).body).toMatchObject({ agent_id: ofOther, stop_reason: 'completed' })
    await stage.server.restart('SIGKILL')
    expect((await stop(id, agent_id)).body).toEqual(answers[0].body)
    expect(ofSubagents(await stage.events(id), 'Result')).toEqual(ofSubagents(all, 'Result'))
  })

  test('one that waits for a decision or is paused ends, also after a kill, and its request is closed', async () => {
    planner.plan = {
      'let two ask': [{ calls: [inBackground('ask first'), inBackground('ask second')] }, { text: 'They ask.' }],
      'ask first': [bash('touch one')],
      'ask second': [bash('touch two')],
      'the user stopped it': [{ text: 'I see.' }, { text: 'I see.' }],
    }
    const id = await create({ permission_mode: 'default' })
    await stage.say(id, 'let two ask')
    await until('two requests', async () => (await requestsOf(call, id, 'permission')).length === 2)
    await stage.server.restart('SIGKILL')
    const starts = (await stage.events(id)).filter(({ type }) => type === 'SubagentStart')
    expect((await stop(id, starts[0].agent_id)).body.stop_reason).toBe('cancelled')
    expect(await requestsOf(call, id, 'permission')).toMatchObject([
      { parent_tool_use_id: starts[1].parent_tool_use_id },
    ])
    await results(id, 2)
    await call('POST', `/conversations/${id}/pause`)
    expect(await statusOf(id)).toBe('paused')
    expect((await stop(id, starts[1].agent_id)).body.stop_reason).toBe('cancelled')
    expect(await requestsOf(call, id, 'permission')).toEqual([])
    expect(await statusOf(id), 'only a client continues what is paused').toBe('paused')
    expectWhole(await stage.events(id))
  })

  test('one in the foreground, and an unknown one, are refused with an error', async () => {
    planner.plan = { wait: [{ calls: [task('in front')] }, { text: 'Done.' }], 'in front': [{ text: 'In front.' }] }
    const id = await create()
    await stage.say(id, 'wait')
    const { agent_id } = (await stage.events(id)).find(({ type }) => type === 'SubagentStart')
    for (const unknown of [agent_id, id])
      expect(await stop(id, unknown)).toMatchObject({ status: 404, body: { error: 'subagent_not_found' } })
  })
})
