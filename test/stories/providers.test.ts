/** Conversations through the APIs of the vendors: tool calls, signed reasoning, a restart in between, and a change of provider. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ScriptedTurn } from '../../src/llm/scripted/script.ts'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'

const TURNS: readonly ScriptedTurn[] = [
  { reasoning: 'I should look around.', text: 'I look.', ...bash('echo one; echo two') },
  { reasoning: 'Two lines.', text: 'There are two lines.' },
  { reasoning: 'One more look.', ...bash('echo three') },
  { text: 'There are three now.' },
]
const SECRET = 'hunter2-hunter2'

let stage: Stage
beforeAll(async () => {
  stage = await setStage(({ messages, text, body }) => {
    if (body['model'] === 'busy') return { status: 529, error: { type: 'overloaded_error', message: 'Overloaded' } }
    if (text.includes('the value')) return { reasoning: `The value is ${SECRET}.`, text: 'Done.' }
    return TURNS[messages.filter(({ role }) => role === 'assistant').length] ?? { status: 400 }
  })
})
afterAll(() => stage[Symbol.asyncDispose]())

const create = (provider: string) =>
  stage.create({
    llm_config: { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key', provider },
  })
const ofType = (events: readonly any[], type: string) => events.find((event) => event.type === type) // eslint-disable-line typescript/no-explicit-any

const PROVIDERS = [
  ['anthropic', '/messages'],
  ['openai_responses', '/responses'],
] as const

test.each(PROVIDERS)(
  '%s: reasoning is kept in the log and sent back unchanged, also after a restart',
  async (provider, path) => {
    const id = await create(provider)
    const events = await stage.say(id, 'What is here?')
    expect(ofType(events, 'Result')).toMatchObject({ final_text: 'There are two lines.' })
    expect(ofType(events, 'ToolResult').output).toMatchObject({ stdout: expect.stringContaining('two') })
    const [thought] = ofType(events, 'AssistantMessage').content
    expect(thought).toMatchObject({
      type: 'reasoning',
      text: 'I should look around.',
      provider_data: { provider, data: expect.any(String) },
    })
    await stage.server.restart('SIGKILL')
    // The scripted model refuses changed reasoning, and calls without their results, as the vendor does.
    expect(ofType(await stage.say(id, 'And now?'), 'Result')).toMatchObject({ final_text: 'There are three now.' })
    expect(stage.model.requests.at(-1)?.path).toContain(path)
    expect(stage.model.requests.at(-1)?.text).toContain(thought.provider_data.data)
  },
)

test.each(['anthropic', 'openai_responses', 'openai'])(
  'the provider can change in the middle of a conversation, to %s: foreign reasoning is left out',
  async (provider) => {
    const id = await create(provider === 'anthropic' ? 'openai_responses' : 'anthropic')
    const [thought] = ofType(await stage.say(id, 'What is here?'), 'AssistantMessage').content
    await stage.server.call('PUT', `/conversations/${id}/config`, { llm_config: { provider } })
    expect(ofType(await stage.say(id, 'And now?'), 'Result')).toMatchObject({ final_text: 'There are three now.' })
    expect(stage.model.requests.at(-1)?.text).not.toContain(thought.provider_data.data)
  },
)

test.each(PROVIDERS)(
  '%s: reasoning that contains a secret is shown without it, and not sent back',
  async (provider) => {
    const id = await create(provider)
    await stage.server.call('PUT', `/conversations/${id}/secrets`, { secrets: { TOKEN: SECRET } })
    const events = await stage.say(id, 'Think of the value.')
    expect(ofType(events, 'AssistantMessage').content).toEqual([
      { type: 'reasoning', text: 'The value is <secret:TOKEN>.' },
      { type: 'text', text: 'Done.' },
    ])
    await stage.say(id, 'Again.')
    expect(stage.model.requests.at(-1)?.text).not.toMatch(/"type":"(thinking|reasoning)"/)
  },
)

test('while a model is overloaded its fallback answers, and the log names it', async () => {
  const fallback_models = ['scripted']
  const llm_config = { model: 'busy', base_url: stage.model.baseUrl, provider: 'anthropic', fallback_models }
  const id = await stage.create({ llm_config })
  const events = await stage.say(id, 'What is here?')
  expect(ofType(events, 'ModelRetry')).toMatchObject({ error_type: 'rate_limit', next_model: 'scripted', wait_ms: 0 })
  expect(ofType(events, 'AssistantMessage')).toMatchObject({ model: 'scripted' })
  expect(ofType(events, 'Result')).toMatchObject({ final_text: 'There are two lines.' })
})
