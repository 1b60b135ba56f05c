/** A form of an MCP server, which no client of OpenAI can fill in. */
import { join } from 'node:path'
import OpenAI from 'openai'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { setStageHere } from '../support/agent.ts'
import { KEY } from '../support/server.ts'

// The server is a program of the tests, which a sandbox hides where the clone is below /tmp.
const stage = await setStageHere(
  ({ body: { messages } }) => {
    const last = messages.at(-1)
    if (last?.role === 'tool') return { text: `Read: ${JSON.stringify(last.content)}` }
    if (JSON.stringify(last?.content).includes('form')) return { calls: [{ name: 'mcp__odd__ask', arguments: {} }] }
    return { text: 'Hello there.' }
  },
  { OPENHANDS_ISOLATION: 'none' },
)
afterAll(() => stage[Symbol.asyncDispose]())
const { server } = stage
const openai = new OpenAI({ apiKey: KEY, baseURL: `${server.url}/v1`, maxRetries: 0 })

beforeAll(async () => {
  const llm_config = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
  const odd = { command: process.execPath, args: [join(import.meta.dirname, '../mcp/children/odd-server.ts')] }
  const profile = { tools: ['Bash'], mcp: { mcpServers: { odd } }, permission_mode: 'bypass', llm_config }
  const { status, body } = await server.call('PUT', '/profiles/forms', profile)
  expect(status, JSON.stringify(body)).toBe(201)
})

test.each([false, true])('ends a response, and the next message declines it (stream: %s)', async (stream) => {
  const body = { model: 'forms', input: 'the form' }
  const asked = stream ? await openai.responses.stream(body).finalResponse() : await openai.responses.create(body)
  expect(asked).toMatchObject({ status: 'completed' })
  expect(asked.output_text).toMatch(/How shall it be\?.*1\. red.*The next message declines this form/s)
  const next = { model: 'forms', previous_response_id: asked.id }
  const wrong = { type: 'function_call_output', call_id: 'call', output: 'green' } as const
  for (const input of [[], [wrong]])
    await expect(openai.responses.create({ ...next, input })).rejects.toMatchObject({ status: 409 })
  const response = await openai.responses.create({ ...next, input: 'Go on without it.' })
  const output = expect.stringContaining('decline')
  expect(response.output[0]).toMatchObject({ type: 'mcp_call', name: 'mcp__odd__ask', output })
  expect(response.output_text).toBe('Hello there.')
  expect(await openai.responses.retrieve(asked.id)).toMatchObject({ output_text: asked.output_text })
})

test('is declined with a response that is cancelled, and the conversation continues', async () => {
  const asked = await openai.responses.create({ model: 'forms', input: 'the form' })
  await openai.responses.cancel(asked.id)
  const next = await openai.responses.create({ model: 'forms', input: 'Hello', previous_response_id: asked.id })
  expect(next.output_text).toBe('Hello there.')
})

test('ends a chat, whose next message is refused with words about the form, until somebody answers it', async () => {
  const headers = { 'X-Conversation-Id': 'order-17' }
  const messages: OpenAI.Chat.ChatCompletionMessageParam[] = [{ role: 'user', content: 'the form' }]
  const say = () => openai.chat.completions.create({ model: 'forms', messages }, { headers })
  const { content } = (await say()).choices[0]!.message
  expect(content).toMatch(/How shall it be\?.*Decide with the API of the server/s)
  messages.push({ role: 'assistant', content }, { role: 'user', content: 'Hello' })
  await expect(say()).rejects.toMatchObject({ status: 409, code: 'waiting_for_decision' })
  const [, path] = /POST (\S+)\. A message/.exec(content!)!
  const answer = { kind: 'elicitation', answers: { '0': 'Decline' } }
  expect((await server.call('POST', path!, answer)).status).toBe(200)
})
