/** Compactions of conversations with a model that misbehaves. */
import { describe, expect, test } from 'vitest'
import { asksForSummary, faultsIn, userTexts } from '../../support/chat-requests.ts'
import type { ScriptedQuestion, ScriptedTurn } from '../../../src/llm/scripted/script.ts'
import type { Bench } from '../../conversations/fixtures.ts'
import { call, endOf, eventsOf, only, say, setBench, tool, userText } from '../../conversations/fixtures.ts'

const big = tool('Big', (input) => ({ output: 'x'.repeat(Number(input['chars'] ?? 4000)) }))

type Behaviour = {
  /** Answers a request for a summary; the number of those before it. */
  readonly summary?: (question: ScriptedQuestion, before: number) => ScriptedTurn
  /** Refuses longer requests, as the endpoint of a model does. */
  readonly window?: number
  readonly steps?: number
  readonly chars?: number
}

/** Makes so many calls per message, then answers. */
function worker({
  summary = () => ({ text: 'What was done.' }),
  window = 1e9,
  steps = 12,
  chars = 4000,
}: Behaviour = {}) {
  const seen = { faults: [] as string[], summaries: 0, refused: 0 }
  let done = 0
  const script = (question: ScriptedQuestion): ScriptedTurn => {
    seen.faults.push(...faultsIn(question.messages))
    if (question.text.length / 4 > window) {
      seen.refused++
      return { status: 400, error: { code: 'context_length_exceeded', message: 'maximum context length' } }
    }
    if (asksForSummary(question)) return summary(question, seen.summaries++)
    return ++done % steps === 0 ? { text: 'Done.' } : { calls: [call('Big', { chars, at: done })] }
  }
  return { script, seen }
}

const converse = (bench: Bench, fields: object = {}, llm: object = { context_window: 8000 }) =>
  bench.converse({ llm_config: { model: 'scripted', base_url: bench.model.baseUrl, ...llm }, ...fields })

const summariesIn = async (conversation: Parameters<typeof eventsOf>[0]) =>
  only(await eventsOf(conversation), 'Condensation').filter((event) => event.forgotten_through_seq > 0)

describe('a model asked for a summary that', () => {
  test.each<[string, (question: ScriptedQuestion, before: number) => ScriptedTurn, string | undefined]>([
    ['calls a tool instead', () => ({ calls: [call('Big', {})] }), 'called a tool'],
    ['says nothing', () => ({ text: '' }), 'empty'],
    ['says white space', () => ({ text: ' \n ' }), 'empty'],
    ['is stopped by a filter', () => ({ text: 'No.', finish_reason: 'content_filter' }), 'filter'],
    ['answers the second time', (_, before) => (before === 0 ? { text: '' } : { text: 'Second.' }), undefined],
  ])('%s: the run continues, and the reason is in the log', async (_, summary, failure) => {
    const { script, seen } = worker({ summary })
    await using bench = await setBench({ tools: [big], script })
    const conversation = await converse(bench)
    expect(await say(conversation)).toMatchObject({ stop_reason: 'completed' })
    expect(seen.faults).toEqual([])
    const [first] = await summariesIn(conversation)
    if (failure === undefined) expect(first).toMatchObject({ summary: 'Second.' })
    else expect(first).toMatchObject({ failure: expect.stringContaining(failure) })
    expect(first?.usage?.output_tokens).toBeGreaterThanOrEqual(0)
    expect(userTexts(bench.model.requests.at(-1)!.messages)).toContain(
      failure ? 'no summary of it could be made' : 'Second.',
    )
  })

  test('writes a megabyte is cut off, and its tokens are counted', async () => {
    const { script } = worker({ summary: () => ({ text: 'long '.repeat(200_000) }) })
    await using bench = await setBench({ tools: [big], script })
    const conversation = await converse(bench)
    expect(await say(conversation)).toMatchObject({ stop_reason: 'completed' })
    const [first] = await summariesIn(conversation)
    expect(first?.summary?.length).toBeLessThan(10_000)
    expect(first?.usage?.output_tokens).toBeGreaterThan(1000)
  })

  test('fails with an error of the provider ends the run with that error, and nothing is lost', async () => {
    const { script } = worker({ summary: () => ({ status: 401, error: { message: 'no' } }) })
    await using bench = await setBench({ tools: [big], script })
    const conversation = await converse(bench)
    expect(await say(conversation)).toMatchObject({ stop_reason: 'error' })
    expect(only(await eventsOf(conversation), 'ErrorEvent').at(-1)).toMatchObject({ error_type: 'auth' })
    expect(await summariesIn(conversation)).toEqual([])
  })
})

describe('a model that refuses a request as too long', () => {
  test('is asked again after one compaction, without a known window', async () => {
    const { script, seen } = worker({ window: 6000 })
    await using bench = await setBench({ tools: [big], script })
    const conversation = await converse(bench, {}, {})
    expect(await say(conversation)).toMatchObject({ stop_reason: 'completed' })
    expect(seen.refused).toBeGreaterThan(0)
    expect(seen.faults).toEqual([])
    const all = only(await eventsOf(conversation), 'Condensation')
    expect(all[0]).toMatchObject({ trigger: 'context_window' })
  })

  test.each([
    ['smaller than the prompt', {}, 'word'],
    ['smaller than one message', {}, 'word '.repeat(20_000)],
  ])('because its window is %s: the run ends with advice', async (_, fields, text) => {
    const { script } = worker({ window: 50 })
    await using bench = await setBench({ tools: [big], script })
    const conversation = await converse(bench, fields, { context_window: 1000 })
    expect(await say(conversation, text)).toMatchObject({ stop_reason: 'error' })
    const [error] = only(await eventsOf(conversation), 'ErrorEvent')
    expect(error).toMatchObject({
      error_type: 'context_window',
      message: expect.stringContaining('begin a new conversation'),
    })
  })

  test('is not asked again with enabled: false', async () => {
    const { script, seen } = worker({ window: 6000 })
    await using bench = await setBench({ tools: [big], script })
    const conversation = await converse(bench, { compaction: { enabled: false } })
    expect(await say(conversation)).toMatchObject({ stop_reason: 'error' })
    expect(seen.refused).toBe(1)
  })
})

test('one result that is larger than the window is shortened, and the run continues', async () => {
  const { script, seen } = worker({ window: 8000, steps: 3, chars: 200_000 })
  await using bench = await setBench({ tools: [big], script })
  const conversation = await converse(bench)
  expect(await say(conversation)).toMatchObject({ stop_reason: 'completed' })
  expect(seen).toMatchObject({ faults: [], refused: 0 })
})

test.each([100, 4000])('a context that stays full is not compacted at every step: results of %i', async (chars) => {
  const { script } = worker({ steps: 30, chars })
  await using bench = await setBench({ tools: [big], script })
  const conversation = await converse(bench, { system_prompt: 'word '.repeat(10_000) }, { context_window: 8000 })
  expect(await say(conversation)).toMatchObject({ stop_reason: 'completed' })
  expect(only(await eventsOf(conversation), 'Condensation').length).toBeLessThan(10)
})

test.each([
  ['nearly nothing, because the rest was cached', { prompt_tokens: 3, completion_tokens: 1 }],
  ['an absurd number', { prompt_tokens: 1e11, completion_tokens: 1 }],
  ['a negative number', { prompt_tokens: -100, completion_tokens: -1 }],
  ['nothing', null],
])(
  'an endpoint that reports %s is not believed: the conversation is compacted in time, and not always',
  async (_, usage) => {
    const { script, seen } = worker({ steps: 30, window: 8000 })
    await using bench = await setBench({ tools: [big], script: (question) => ({ ...script(question), usage }) })
    const conversation = await converse(bench)
    expect(await say(conversation)).toMatchObject({ stop_reason: 'completed' })
    expect(seen).toMatchObject({ faults: [], refused: 0 })
    const { length } = only(await eventsOf(conversation), 'Condensation')
    expect(length).toBeGreaterThan(1)
    expect(length).toBeLessThan(10)
  },
)

test('another model writes the summaries if there is one, and is paid for by its name', async () => {
  const { script } = worker()
  await using bench = await setBench({ tools: [big], script })
  const conversation = await converse(bench, { compaction: { model: 'small' } })
  const result = await say(conversation)
  expect(Object.keys(result.usage).toSorted()).toEqual(['scripted', 'small'])
  const asked = bench.model.requests.filter(asksForSummary)
  for (const { body, messages } of asked) {
    expect(body['model']).toBe('small')
    expect(messages).toHaveLength(2)
  }
  expect(asked.length).toBeGreaterThan(0)
})

test('the output schema of a run outlives its compactions, and those of earlier runs do not', async () => {
  const said = { current: '' }
  const { script, seen } = worker()
  await using bench = await setBench({
    tools: [big],
    script: async (question) => {
      const turn = script(question)
      const isEnd = turn.text === 'Done.'
      if (isEnd) said.current = userTexts(question.messages)
      return isEnd ? { text: '{"n": 1}' } : turn
    },
  })
  const conversation = await converse(bench)
  const run = async (name: string) => {
    const output_schema = { type: 'object', description: name, required: ['n'] }
    await conversation.post(userText('go'))
    return await endOf(conversation, await conversation.run({ output_schema }))
  }
  for (const name of ['the first', 'the second']) {
    expect(await run(name)).toMatchObject({ stop_reason: 'completed', structured_output: { n: 1 } })
    expect(said.current.match(/"description":"the (first|second)"/g)).toEqual([`"description":"${name}"`])
  }
  expect((await summariesIn(conversation)).length).toBeGreaterThan(1)
  expect(seen.faults).toEqual([])
})

describe('a limit of', () => {
  const priced = { input_cost_per_token: 0.001, output_cost_per_token: 0.001 }

  test('tokens ends the run with its own reason, and another run may begin', async () => {
    const { script } = worker()
    await using bench = await setBench({ tools: [big], script })
    const conversation = await converse(bench, { max_tokens_per_run: 3000 })
    const result = await say(conversation)
    expect(result).toMatchObject({ stop_reason: 'token_limit' })
    expect(only(await eventsOf(conversation), 'ErrorEvent')[0]?.message).toContain('max_tokens_per_run')
    expect(conversation.view()).toMatchObject({ status: 'error', max_tokens_per_run: 3000 })
    await conversation.configure({ max_tokens_per_run: 1_000_000 })
    expect(await say(conversation, 'Again.')).toMatchObject({ stop_reason: 'completed' })
  })

  test('cost ends every run of the conversation, until it is raised', async () => {
    const { script } = worker()
    await using bench = await setBench({ tools: [big], script })
    const conversation = await converse(bench, { max_budget_usd: 2 }, priced)
    expect(await say(conversation)).toMatchObject({ stop_reason: 'budget_limit' })
    expect(await say(conversation, 'Again.')).toMatchObject({ stop_reason: 'budget_limit', steps: 0 })
    await conversation.configure({ max_budget_usd: 1000 })
    expect(await say(conversation, 'Now.')).toMatchObject({ stop_reason: 'completed' })
  })

  test('cost that a summary reaches ends the run before the next request', async () => {
    const usage = { prompt_tokens: 100_000, completion_tokens: 1 }
    const { script } = worker({ summary: () => ({ text: 'What was done.', usage }) })
    await using bench = await setBench({ tools: [big], script })
    const conversation = await converse(bench, { max_budget_usd: 90 }, { ...priced, context_window: 8000 })
    expect(await say(conversation)).toMatchObject({ stop_reason: 'budget_limit' })
    expect(asksForSummary(bench.model.requests.at(-1)!)).toBe(true)
  })
})
