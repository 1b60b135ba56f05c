/** Models that are not profiles: what they answer has nothing of the server but its model. */
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import { KEY } from '../support/server.ts'
import { startServerHere } from '../support/server-here.ts'

const unknown = { status: 404, error: { code: 'model_not_found', message: 'The model `gone` does not exist' } }
const provider = await startScriptedModel(({ body, text }) => {
  if (body['model'] === 'gone') return unknown
  return text.includes('which weather') && !text.includes('Rain')
    ? { calls: [{ name: 'weather', arguments: {} }] }
    : { text: `I am ${String(body['model'])}.` }
})
const llm = { LLM_MODEL: 'scripted', LLM_BASE_URL: provider.baseUrl, LLM_API_KEY: 'scripted-model-key' }
const server = await startServerHere({ ...llm, OPENHANDS_ALLOW_PLAIN_MODELS: 'true' })
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await provider.close()
})
const clientWith = (apiKey: string) => new OpenAI({ apiKey, baseURL: `${server.url}/v1`, maxRetries: 0 })
const openai = clientWith(KEY)
const [model, input] = ['plain-model', 'Hello']
const messages = [{ role: 'user' as const, content: input }]
const inThread = (name: string) => ({ headers: { 'X-Conversation-Id': name } })
const asked = () => provider.requests.at(-1)!.body
const missing = { status: 404, code: 'model_not_found', param: 'model' }

beforeAll(async () => {
  expect((await server.call('PUT', '/profiles/coder', { tools: ['Bash'] })).status).toBe(201)
})

async function limitedTo(limits: object): Promise<OpenAI> {
  const key = await server.call('POST', '/keys', { name: 'limited', scopes: ['read', 'write'], ...limits })
  return clientWith(key.body.key)
}

test('a model that is not a profile does not exist unless the operator allows it', async () => {
  await using other = await startServerHere(llm)
  const client = new OpenAI({ apiKey: KEY, baseURL: `${other.url}/v1`, maxRetries: 0 })
  await expect(client.responses.create({ model: 'scripted', input })).rejects.toMatchObject(missing)
  await expect(client.chat.completions.create({ model: 'scripted', messages })).rejects.toMatchObject(missing)
  await expect(client.models.retrieve('scripted')).rejects.toMatchObject(missing)
  expect((await client.models.list()).data).toMatchObject([{ id: 'default' }])
})

test('a plain model answers without tools and without a place to work, and a profile has its tools', async () => {
  const first = await openai.responses.create({ model, input, instructions: 'In French.' })
  expect(first).toMatchObject({ model, output_text: 'I am plain-model.', tools: [] })
  expect(asked()).toMatchObject({ model })
  expect(asked()).not.toHaveProperty('tools')
  expect(JSON.stringify(asked())).not.toMatch(/working directory|agent/)
  expect(JSON.stringify(asked())).toContain('In French.')
  const next = await openai.responses.create({ model, input: 'Again', previous_response_id: first.id })
  expect(next.output_text).toBe('I am plain-model.')
  const { choices } = await openai.chat.completions.create({ model, messages }, inThread('of-a-plain-model'))
  expect(choices[0]!.message.content).toBe('I am plain-model.')
  expect(asked()).not.toHaveProperty('tools')
  const create: object = { model }
  const { id: conversation } = await openai.conversations.create(create)
  expect(await openai.responses.create({ model, input, conversation })).toMatchObject({ model })
  expect(asked()).not.toHaveProperty('tools')
  expect((await openai.responses.create({ model: 'coder', input })).output_text).toBe('I am scripted.')
  expect(asked()).toMatchObject({ tools: [{ function: { name: 'Bash' } }] })
})

test('a plain model calls the functions of the client', async () => {
  const tools = [{ type: 'function' as const, function: { name: 'weather', parameters: { type: 'object' } } }]
  const question = { role: 'user' as const, content: 'which weather' }
  const { choices } = await openai.chat.completions.create({ model, messages: [question], tools })
  const [{ message }] = choices as [(typeof choices)[0]]
  expect(message.tool_calls).toHaveLength(1)
  const result = { role: 'tool' as const, tool_call_id: message.tool_calls![0]!.id, content: 'Rain' }
  const answer = await openai.chat.completions.create({ model, messages: [question, message, result], tools })
  expect(answer.choices[0]!.message.content).toBe('I am plain-model.')
})

test('the list has the profiles and the model of the server', async () => {
  const listed = async (client: OpenAI) => (await client.models.list()).data.map(({ id }) => id)
  expect(await listed(openai)).toEqual(['coder', 'scripted'])
  expect(await openai.models.retrieve('scripted')).toMatchObject({ id: 'scripted', object: 'model' })
  expect(await listed(await limitedTo({ profiles: ['coder'] }))).toEqual(['coder'])
})

describe('a plain model never answers with the tools', () => {
  test.each([model, 'scripted'])('of a profile: %s', async (plain) => {
    const wrong = { status: 400, param: 'model' }
    const first = await openai.responses.create({ model: 'coder', input })
    const continued = openai.responses.create({ model: plain, input, previous_response_id: first.id })
    await expect(continued).rejects.toMatchObject(wrong)
    const create: object = { model: 'coder' }
    const { id: conversation } = await openai.conversations.create(create)
    await expect(openai.responses.create({ model: plain, input, conversation })).rejects.toMatchObject(wrong)
    const thread = inThread(`coder-and-${plain}`)
    await openai.chat.completions.create({ model: 'coder', messages }, thread)
    const other = { status: 409, code: 'conversation_exists' }
    await expect(openai.chat.completions.create({ model: plain, messages }, thread)).rejects.toMatchObject(other)
  })

  test('of a conversation without a profile', async () => {
    const made = await server.call('POST', '/conversations', { external_id: 'by-rest', tools: ['Bash'] })
    expect(made.status).toBe(201)
    const inOne = openai.chat.completions.create({ model: 'scripted', messages }, inThread('by-rest'))
    await expect(inOne).rejects.toMatchObject({ status: 409, code: 'conversation_exists' })
    const conversation = `conv_${made.body.id.replaceAll('-', '')}`
    const named = openai.responses.create({ model: 'scripted', input, conversation })
    await expect(named).rejects.toMatchObject({ status: 400, param: 'model' })
  })
})

test('a key that is limited to profiles has no plain models, nor what they have answered', async () => {
  const limited = await limitedTo({ profiles: ['coder'] })
  await expect(limited.responses.create({ model, input })).rejects.toMatchObject(missing)
  await expect(limited.chat.completions.create({ model, messages })).rejects.toMatchObject(missing)
  const create: object = { model }
  await expect(limited.conversations.create(create)).rejects.toMatchObject(missing)
  const { id } = await openai.responses.create({ model, input })
  await expect(limited.responses.retrieve(id)).rejects.toMatchObject({ status: 404 })
  const continued = limited.responses.create({ model: 'coder', input, previous_response_id: id })
  await expect(continued).rejects.toMatchObject({ status: 404, code: 'previous_response_not_found' })
})

test('a key that is limited to conversations continues those of plain models, and makes none', async () => {
  const { body } = await server.call('POST', '/conversations', {
    external_id: 'shared',
    tools: [],
    llm_config: { model },
  })
  const limited = await limitedTo({ conversations: [body.id] })
  const answer = await limited.chat.completions.create({ model, messages }, inThread('shared'))
  expect(answer.choices[0]!.message.content).toBe('I am plain-model.')
  await expect(limited.responses.create({ model, input })).rejects.toMatchObject({ status: 403 })
  const other = limited.chat.completions.create({ model: 'scripted', messages }, inThread('shared'))
  await expect(other).rejects.toMatchObject({ status: 403 })
})

test('a model that the provider does not know is refused as OpenAI refuses it', async () => {
  const refused = { ...missing, message: expect.stringContaining('does not know the model "gone"') }
  await expect(openai.responses.create({ model: 'gone', input })).rejects.toMatchObject(refused)
  await expect(openai.chat.completions.create({ model: 'gone', messages })).rejects.toMatchObject(refused)
  const chat = await openai.chat.completions.create({ model: 'gone', messages, stream: true })
  const readAll = async () => {
    for await (const _ of chat);
  }
  await expect(readAll()).rejects.toMatchObject({ code: 'model_not_found' })
  const events: string[] = []
  for await (const event of await openai.responses.create({ model: 'gone', input, stream: true })) {
    events.push(event.type)
    if (event.type === 'response.failed') expect(event.response.error).toMatchObject({ code: 'model_not_found' })
  }
  expect(events.at(-1)).toBe('response.failed')
})
