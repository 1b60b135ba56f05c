/** Runs whose answer has to be JSON of a schema: asked for, checked, asked once more, and returned in the result. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ScriptedTurn } from '../../src/llm/scripted/script.ts'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'

const output_schema = {
  type: 'object',
  properties: { lines: { type: 'integer' } },
  required: ['lines'],
  additionalProperties: false,
}
const GOOD: ScriptedTurn = { text: '{"lines": 2}' }
const BAD: ScriptedTurn = { text: 'There are two lines.' }

let stage: Stage
let turns: ScriptedTurn[] = []
beforeAll(async () => {
  stage = await setStage(() => turns.shift() ?? { status: 400 })
})
afterAll(() => stage[Symbol.asyncDispose]())

async function run(script: ScriptedTurn[], create: object, request: object = {}) {
  turns = [...script]
  const id = await stage.create({
    initial_message: { role: 'user', content: 'How many lines?' },
    ...create,
  })
  const { status, body } = await stage.server.call('POST', `/conversations/${id}/run`, { wait: true, ...request })
  expect(status).toBe(200)
  const requests = (await stage.events(id)).filter(({ type }) => type === 'OutputRequest')
  return { id, result: body.result, status: body.status, requests }
}

const lastSaid = () => JSON.stringify(stage.model.requests.at(-1)?.messages.at(-1))

describe('the output of a run', () => {
  test('is asked for once, after tool calls as well, and returned as JSON', async () => {
    const { result, requests } = await run([bash('echo one; echo two'), GOOD], {}, { output_schema })
    expect(result).toMatchObject({ stop_reason: 'completed', structured_output: { lines: 2 } })
    expect(requests).toEqual([expect.objectContaining({ output_schema })])
    expect(stage.model.requests.at(-1)?.text.match(/JSON Schema is/g)).toHaveLength(1)
  })

  test('that is not valid is asked for once more, with the reason', async () => {
    const { result, requests } = await run([BAD, GOOD], {}, { output_schema })
    expect(result).toMatchObject({ stop_reason: 'completed', structured_output: { lines: 2 }, steps: 2 })
    expect(requests).toHaveLength(2)
    expect(requests[1].fault).toContain('not JSON')
    expect(lastSaid()).toContain('not JSON')
  })

  test('that is not valid then either ends the run with an error', async () => {
    const { result, status, id } = await run([BAD, { text: '{"lines": "two"}' }], {}, { output_schema })
    expect(result).toMatchObject({ stop_reason: 'error', steps: 2 })
    expect(result).not.toHaveProperty('structured_output')
    expect(status).toBe('error')
    const error = (await stage.events(id)).find(({ type }) => type === 'ErrorEvent')
    expect(error.message).toMatch(/output_schema: \/lines must be integer/)
  })

  test('may also be the text of Finish', async () => {
    const finish = { calls: [{ name: 'Finish', arguments: { message: '{"lines": 3}' } }] }
    const { result } = await run([finish], { tools: ['Finish'] }, { output_schema })
    expect(result).toMatchObject({ stop_reason: 'finished', structured_output: { lines: 3 } })
  })

  test('has the schema of the conversation if the run does not have another one', async () => {
    const { result, id } = await run([GOOD], { output_schema })
    expect(result).toMatchObject({ structured_output: { lines: 2 } })
    turns = [{ text: '"two"' }]
    const own = await stage.server.call('POST', `/conversations/${id}/run`, {
      wait: true,
      output_schema: { type: 'string' },
    })
    expect(own.body.result).toMatchObject({ structured_output: 'two' })
  })

  test('has the schema that the configuration was given later, until it is removed', async () => {
    const { id } = await run([BAD], {})
    const put = async (schema: unknown) =>
      await stage.server.call('PUT', `/conversations/${id}/config`, { output_schema: schema })
    const next = async () => (await stage.server.call('POST', `/conversations/${id}/run`, { wait: true })).body.result
    expect((await put(output_schema)).body).toMatchObject({ output_schema })
    turns = [GOOD]
    expect(await next()).toMatchObject({ structured_output: { lines: 2 } })
    expect((await put({ $ref: 'https://elsewhere.example/' })).status).toBe(400)
    expect((await put(null)).body).not.toHaveProperty('output_schema')
    await stage.server.restart('SIGKILL')
    turns = [BAD]
    expect(await next()).not.toHaveProperty('structured_output')
  })

  test('is still wanted after a restart', async () => {
    const { id } = await run([BAD], {}, { output_schema, max_steps: 1 })
    await stage.server.restart('SIGKILL')
    turns = [GOOD]
    const { body } = await stage.server.call('POST', `/conversations/${id}/run`, { wait: true, output_schema })
    expect(body.result).toMatchObject({ structured_output: { lines: 2 } })
  })
})

test('a run without a schema has neither a request nor an output', async () => {
  const { result, requests } = await run([BAD], {})
  expect(result).toMatchObject({ stop_reason: 'completed' })
  expect(result).not.toHaveProperty('structured_output')
  expect(requests).toEqual([])
})

test.each([
  ['another document', { $ref: 'https://example.com/x.json' }],
  ['an unknown type', { type: 'thing' }],
  ['too much', { description: 'a'.repeat(70_000) }],
])('a schema with %s is refused, for a run and for a conversation', async (_what, wrong) => {
  const refused = { status: 400, body: { error: 'invalid_request' } }
  const id = await stage.create()
  expect(await stage.server.call('POST', `/conversations/${id}/run`, { output_schema: wrong })).toMatchObject(refused)
  const llm_config = { model: 'm', base_url: stage.model.baseUrl }
  expect(await stage.server.call('POST', '/conversations', { llm_config, output_schema: wrong })).toMatchObject(refused)
})
