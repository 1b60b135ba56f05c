/** Subagents while models, clients and the configuration change around them, through HTTP only. */
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { PATIENCE_MS } from '../support/patience.ts'
import { createPlanner, expectWhole, ofMain, ofSubagents, task } from '../support/subagents.ts'
import { answer, requestsOf } from './requests.ts'

const ROOT = join(import.meta.dirname, '../..')
const CHILDREN = join(ROOT, 'test/mcp/children')

const planner = createPlanner()
const worker = { description: 'Works.', prompt: 'You are a worker.' }

let stage: Stage
beforeAll(async () => {
  stage = await setStage(planner.script, {
    env: {
      OPENHANDS_MAX_CONCURRENT_RUNS: '1',
      OPENHANDS_SANDBOX_READABLE: [join(ROOT, 'node_modules'), CHILDREN].join(':'),
    },
  })
})
afterAll(() => stage[Symbol.asyncDispose]())

const call = (...args: Parameters<Stage['server']['call']>) => stage.server.call(...args)
const create = (fields: object = {}) => stage.create({ agents: { worker }, tools: ['Bash'], ...fields })
const post = (id: string, content: string) =>
  call('POST', `/conversations/${id}/messages`, { message: { role: 'user', content }, run: true })
const poll = (look: () => Promise<unknown>) => expect.poll(look, { timeout: PATIENCE_MS, interval: 20 })
const permissions = (id: string) => requestsOf(call, id, 'permission')
const lastEnd = async (id: string) => ofMain(await stage.events(id), 'Result').at(-1)?.final_text
const background = (prompt: string) => task(prompt, { run_in_background: true })

test('a call with the id of an earlier one, which a compaction has forgotten, is another call and needs its own decision', async () => {
  planner.plan = {
    'begin behind': [{ calls: [{ ...background('touch one'), id: 'call_7' }] }, { text: 'Begun.' }],
    'touch one': [bash('touch by-subagent')],
    'say much': [{ text: 'much '.repeat(300) }],
    summary: [{ text: 'A summary.' }],
    'once more': [{ calls: [{ ...bash('touch by-main').calls[0]!, id: 'call_7' }] }],
  }
  const id = await create({ permission_mode: 'default' })
  await stage.say(id, 'begin behind')
  await poll(() => permissions(id)).toHaveLength(1)
  for (let at = 0; at < 4; at++) await stage.say(id, `say much ${at}`)
  expect((await call('POST', `/conversations/${id}/compact`, {})).status).toBe(200)
  await post(id, 'once more')
  await poll(() => permissions(id)).toHaveLength(2)
  const ids = ofMain(await stage.events(id), 'ToolUse').map((event) => event.tool_use_id)
  expect(new Set(ids).size).toBe(2)
  await call('DELETE', `/conversations/${id}`)
})

test('a question of an MCP server to a subagent in the background names the agent, and can be answered', async () => {
  planner.plan = {
    'ask behind': [{ calls: [background('which door')] }, { text: 'Begun.' }],
    'which door': [{ calls: [{ name: 'mcp__odd__ask', arguments: {} }] }, { text: 'A red door.' }],
    'A red door.': [{ text: 'Red it is.' }],
  }
  const odd = { command: process.execPath, args: [join(CHILDREN, 'odd-server.ts')] }
  const id = await create({ mcp: { mcpServers: { odd } } })
  await stage.say(id, 'ask behind')
  const pending = () => requestsOf(call, id, 'elicitation')
  await poll(pending).toHaveLength(1)
  const [{ request_id, payload, ...asked }] = await pending()
  const start = (await stage.events(id)).find(({ type }) => type === 'SubagentStart')
  expect(asked).toMatchObject({ agent_name: 'worker', parent_tool_use_id: start.parent_tool_use_id })
  const answers = { [payload.questions[0].question]: 'red' }
  expect((await answer(call, id, request_id, { kind: 'elicitation', answers })).status).toBe(200)
  await poll(() => lastEnd(id)).toBe('Red it is.')
  const all = await stage.events(id)
  expectWhole(all)
  expect(JSON.stringify(ofSubagents(all, 'ToolResult')[0].output)).toContain('red')
  expect(ofSubagents(all, 'RequestAnswered')).toMatchObject([{ kind: 'elicitation' }])
})

test('of a very long message the agent reads the beginning and the end; the log has all of it', async () => {
  const long = `begins ${'x'.repeat(200_000)} ends`
  planner.plan = {
    'two long ones': [{ calls: [task('be long'), background('be long')] }, { text: 'late', delay_ms: 200 }],
    'be long': [{ text: long }],
    '[The subagent worker': [{ text: 'Read both.' }, { text: 'Read both.' }],
  }
  const id = await create()
  await stage.say(id, 'two long ones')
  await poll(() => lastEnd(id)).toBe('Read both.')
  const all = await stage.events(id)
  expect(ofSubagents(all, 'Result').map((event) => event.final_text)).toEqual([long, long])
  const result = ofMain(all, 'ToolResult').find(({ truncated }) => truncated)
  expect(result.output.text.length).toBeLessThan(51_000)
  const { text } = planner.seen.findLast((question) => question.text.includes('[The subagent worker'))!
  expect(text.length).toBeLessThan(120_000)
  expect(text.match(/begins x|x ends/g)).toHaveLength(4)
})
