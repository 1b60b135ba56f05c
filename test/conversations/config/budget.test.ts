/** A budget needs the cost of every model that may be asked, and of every answer. */
import { describe, expect, test } from 'vitest'
import { Problem } from '../../../src/contract/problem.ts'
import { call, eventsOf, only, say, setBench, tool } from '../fixtures.ts'

const PRICED = { input_cost_per_token: 1e-6, output_cost_per_token: 1e-6 }
const UNUSED = { base_url: 'https://api.openai.com/v1' }
const BUDGET = { max_budget_usd: 5 }
const AGENTS = { scout: { description: 'Looks.', prompt: 'Look.', model: 'unknown-4' } }

const refusal = async (made: Promise<unknown>) => {
  const error: unknown = await made.catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(Problem)
  return error as Problem
}

describe('a budget is refused for a model without a known cost:', () => {
  const known = { model: 'gpt-5', ...UNUSED }

  test.each<[string, object, string[]]>([
    ['the model', { llm_config: { model: 'unknown-1', ...UNUSED } }, ['unknown-1']],
    ['its fallbacks', { llm_config: { ...known, fallback_models: ['gpt-5-mini', 'unknown-2'] } }, ['unknown-2']],
    [
      'fallbacks of a model whose prices are configured',
      { llm_config: { model: 'unknown-1', ...UNUSED, ...PRICED, fallback_models: ['unknown-2'] } },
      ['unknown-2'],
    ],
    ['that of titles', { llm_config: known, generate_title: true, title_model: 'unknown-3' }, ['unknown-3']],
    ['that of summaries', { llm_config: known, compaction: { model: 'unknown-5' } }, ['unknown-5']],
    ['that of a subagent', { llm_config: known, agents: AGENTS }, ['unknown-4']],
    [
      'all of them, each once',
      { llm_config: { model: 'unknown-4', ...UNUSED }, agents: AGENTS, compaction: { model: 'unknown-5' } },
      ['unknown-4', 'unknown-5'],
    ],
  ])('%s', async (_which, fields, models) => {
    await using bench = await setBench()
    const problem = await refusal(bench.create({ ...BUDGET, ...fields }))
    expect(problem).toMatchObject({ code: 'invalid_request', details: { models } })
    expect(problem.message).toContain(models.join(', '))
    await bench.create(fields)
    const { warnings, allow_unpriced } = await bench.manager.create({
      max_iteration_per_run: 10,
      ...BUDGET,
      ...fields,
      allow_unpriced: true,
    })
    expect(allow_unpriced).toBe(true)
    expect(warnings).toEqual([expect.stringContaining(models.join(', '))])
  })

  test.each<[string, object]>([
    ['all have list prices', { llm_config: { ...known, fallback_models: ['gpt-5-mini'] } }],
    ['the endpoint reports costs', { llm_config: { model: 'openrouter/x/y', fallback_models: ['x/z'] } }],
    ['no title is generated', { llm_config: known, title_model: 'unknown-3' }],
    [
      'a subagent has the model of its caller',
      { llm_config: known, agents: { a: { ...AGENTS.scout, model: 'inherit' } } },
    ],
    ['there is no endpoint yet', { llm_config: { model: 'azure/x' } }],
  ])('but not if %s', async (_why, fields) => {
    await using bench = await setBench()
    await expect(bench.create({ ...BUDGET, ...fields })).resolves.toBeTypeOf('string')
  })
})

test('a change that leaves a budget without a cost is refused, and changes nothing', async () => {
  await using bench = await setBench()
  const llm_config = { model: 'scripted', base_url: bench.model.baseUrl, ...PRICED }
  const conversation = await bench.converse({ llm_config, ...BUDGET })
  for (const update of [
    { llm_config: { fallback_models: ['other'] } },
    { compaction: { model: 'other' } },
    { agents: { scout: { ...AGENTS.scout, model: 'other' } } },
  ])
    expect(await refusal(conversation.configure(update))).toMatchObject({ details: { models: ['other'] } })
  expect(only(await eventsOf(conversation), 'ConfigUpdate')).toEqual([])
  await conversation.configure({ title: 'changed' })
  const view = await conversation.configure({ compaction: { model: 'other' }, allow_unpriced: true })
  expect(view.warnings).toEqual([expect.stringContaining('other')])
  expect(await refusal(conversation.configure({ allow_unpriced: false }))).toMatchObject({ code: 'invalid_request' })
})

test('prices and the window of a model do not stay for another one, or at another endpoint', async () => {
  await using bench = await setBench()
  const free = { input_cost_per_token: 0, output_cost_per_token: 0, context_window: 5000 }
  const llm_config = { model: 'scripted', base_url: bench.model.baseUrl, ...free }
  const conversation = await bench.converse({ llm_config, ...BUDGET })
  for (const update of [{ model: 'other' }, { base_url: 'https://llm.example.com/v1' }])
    expect(await refusal(conversation.configure({ llm_config: update }))).toMatchObject({ code: 'invalid_request' })
  const again = await conversation.configure({ llm_config: { model: 'scripted', temperature: 1 } })
  expect(again).toMatchObject({ llm_config: free })
  expect(again).not.toHaveProperty('dropped')
  const { llm_config: sent } = await conversation.configure({ llm_config: { model: 'other', ...PRICED } })
  expect(sent).toEqual({ model: 'other', base_url: bench.model.baseUrl, temperature: 1, ...PRICED })
  const view = await conversation.configure({ llm_config: { model: 'third' }, allow_unpriced: true })
  expect(view).toMatchObject({ dropped: Object.keys(PRICED), warnings: [expect.stringContaining('third')] })
  expect(view.llm_config).toEqual({ model: 'third', base_url: bench.model.baseUrl, temperature: 1 })
})

test('a run with another model needs its cost', async () => {
  await using bench = await setBench()
  const llm_config = { model: 'scripted', base_url: bench.model.baseUrl, ...PRICED }
  const conversation = await bench.converse({ llm_config, ...BUDGET })
  const refused = { code: 'unknown_cost', details: { models: ['other'] } }
  expect(await refusal(conversation.run({ model: 'other' }))).toMatchObject(refused)
  await conversation.configure({ allow_unpriced: true })
  await expect(conversation.run({ model: 'other' })).resolves.toBeTypeOf('string')
})

describe('an answer without a cost under a budget', () => {
  const tools = [tool('Count', () => ({ output: '3' }))]
  const calling = { text: 'I count.', calls: [call('Count')], usage: null }
  const priced = (baseUrl: string) => ({ model: 'scripted', base_url: baseUrl, ...PRICED })

  test('ends the run after its calls, and the next run has another chance', async () => {
    const script = [calling, { text: 'Three.' }]
    await using bench = await setBench({ tools, script })
    const conversation = await bench.converse({ llm_config: priced(bench.model.baseUrl), ...BUDGET })
    expect(await say(conversation)).toMatchObject({ stop_reason: 'budget_limit' })
    const events = await eventsOf(conversation)
    expect(only(events, 'ToolResult')).toHaveLength(1)
    expect(only(events, 'ErrorEvent').map(({ message }) => message)).toEqual([
      expect.stringMatching(/^The cost of an answer of scripted is not known.*allow_unpriced/),
    ])
    expect(bench.model.requests).toHaveLength(1)
    expect(await say(conversation)).toMatchObject({ stop_reason: 'completed' })
  })

  test('ends the run also if it is the last one', async () => {
    await using bench = await setBench({ script: [{ text: 'Hello.', usage: null }] })
    const conversation = await bench.converse({ llm_config: priced(bench.model.baseUrl), ...BUDGET })
    expect(await say(conversation)).toMatchObject({ stop_reason: 'budget_limit' })
  })

  test('ends the run also if the server has restarted meanwhile', async () => {
    await using bench = await setBench({ tools, script: [calling] })
    const fields = { llm_config: priced(bench.model.baseUrl), ...BUDGET, confirmation_mode: true }
    const conversation = await bench.converse(fields)
    await say(conversation)
    expect(conversation.view().status).toBe('waiting_for_confirmation')
    await bench.restart()
    const again = await bench.manager.open(conversation.id)
    expect(again.state.run).toMatchObject({ unpriced: 'scripted' })
  })

  test.each([
    ['costs may be unknown', { ...BUDGET, allow_unpriced: true }],
    ['there is no budget', {}],
  ])('ends nothing if %s', async (_why, fields) => {
    await using bench = await setBench({ tools, script: [calling, { text: 'Three.', usage: null }] })
    const conversation = await bench.converse({ llm_config: priced(bench.model.baseUrl), ...fields })
    expect(await say(conversation)).toMatchObject({ stop_reason: 'completed' })
  })
})
