/** The client of OpenAI for npm: the Responses API and Chat Completions. */
import assert from 'node:assert/strict'
import OpenAI, { AuthenticationError } from 'openai'
import type { ResponseStreamEvent } from 'openai/resources/responses/responses'
import * as cases from './cases.ts'

const clientWith = (apiKey: string) => new OpenAI({ apiKey, baseURL: `${cases.URL_OF_SERVER}/v1`, maxRetries: 0 })
const openai = clientWith(cases.KEY_OF_SERVER)
const model = 'default'

const APPROVES = { type: 'mcp', server_label: 'agent-server', server_url: 'https://agent-server.invalid' } as const
const SCHEMA = { type: 'object', properties: { number: { type: 'string' } } }
const FUNCTION = { type: 'function', name: 'look_up', strict: false, parameters: SCHEMA } as const

async function decide(approve: boolean): Promise<string> {
  const asked = await openai.responses.create({ model, input: cases.COMPUTE, tools: [APPROVES] })
  const request = asked.output.find((item) => item.type === 'mcp_approval_request')
  assert.deepEqual(JSON.parse(request!.arguments), { command: cases.COMMAND })
  const reason = approve ? {} : { reason: cases.REASON }
  const answer = { type: 'mcp_approval_response', approval_request_id: request!.id, approve, ...reason } as const
  const stream = openai.responses.stream({
    model,
    previous_response_id: asked.id,
    input: [answer],
    tools: [APPROVES],
  })
  return (await stream.finalResponse()).output_text
}

await cases.runCases({
  async 'responses: text'() {
    const stream = openai.responses.stream({ model, input: cases.SLOWLY })
    const events: ResponseStreamEvent[] = []
    for await (const event of stream) events.push(event)
    const final = await stream.finalResponse()
    assert.equal(final.output_text, cases.WORDS)
    assert.equal(final.status, 'completed')
    const deltas = events.flatMap((event) => (event.type === 'response.output_text.delta' ? [event.delta] : []))
    assert.ok(deltas.length > 1)
    assert.equal(deltas.join(''), cases.WORDS)
    assert.equal((await openai.responses.retrieve(final.id)).output_text, cases.WORDS)
  },
  async 'responses: tool'() {
    const { output } = await openai.responses.create({ model, input: cases.PLAN })
    assert.deepEqual(
      output.map(({ type }) => type),
      ['message', 'mcp_call', 'message'],
    )
  },
  async 'responses: allow'() {
    assert.match(await decide(true), cases.RESULT)
  },
  async 'responses: deny'() {
    cases.assertDenied(await decide(false), cases.REASON)
  },
  async 'responses: function'() {
    const asked = await openai.responses.create({ model, input: cases.LOOK_UP, tools: [FUNCTION] })
    const call = asked.output.find((item) => item.type === 'function_call')
    const output = { type: 'function_call_output', call_id: call!.call_id, output: cases.SHIPPED } as const
    const next = { model, previous_response_id: asked.id, input: [output], tools: [FUNCTION] }
    assert.equal((await openai.responses.create(next)).output_text, `Read: ${cases.SHIPPED}`)
  },
  async 'responses: cancel'() {
    const begun = await openai.responses.create({ model, input: cases.ENDLESS, background: true })
    assert.equal(begun.status, 'in_progress')
    assert.equal((await openai.responses.cancel(begun.id)).status, 'cancelled')
    const next = await openai.responses.create({ model, previous_response_id: begun.id, input: cases.HELLO })
    assert.equal(next.output_text, cases.GREETING)
  },
  async 'responses: options'() {
    const options = { instructions: 'Be kind.', temperature: 0.2, max_output_tokens: 500 }
    const { id } = await openai.responses.create({ model, input: cases.HELLO, ...options })
    const { instructions, temperature, max_output_tokens } = await openai.responses.retrieve(id)
    assert.deepEqual({ instructions, temperature, max_output_tokens }, options)
  },
  async 'responses: wrong key'() {
    const asked = clientWith(cases.WRONG_KEY).responses.create({ model, input: cases.HELLO })
    await assert.rejects(asked, (error) => error instanceof AuthenticationError && error.code === 'invalid_api_key')
  },
  async 'chat: text'() {
    const stream = openai.chat.completions.stream({ model, messages: [{ role: 'user', content: cases.SLOWLY }] })
    const pieces: string[] = []
    stream.on('content.delta', ({ delta }) => pieces.push(delta))
    assert.equal(await stream.finalContent(), cases.WORDS)
    assert.ok(pieces.length > 1)
  },
  async 'chat: tool'() {
    const stream = openai.chat.completions.stream({ model, messages: [{ role: 'user', content: cases.PLAN }] })
    const { choices } = await stream.finalChatCompletion()
    assert.match(choices[0]!.message.content!, /^I plan\.\s+Read: /)
    assert.equal(choices[0]!.message.tool_calls, undefined)
  },
  async 'chat: function'() {
    const runner = openai.chat.completions.runTools({
      model,
      messages: [{ role: 'user', content: cases.LOOK_UP }],
      tools: [
        {
          type: 'function',
          function: {
            name: 'look_up',
            description: 'Looks an order up.',
            parameters: SCHEMA,
            function: () => cases.SHIPPED,
          },
        },
      ],
      stream: true,
    })
    assert.equal(await runner.finalContent(), `Read: ${cases.SHIPPED}`)
  },
  async 'chat: approval is named'() {
    const headers = { 'X-Conversation-Id': crypto.randomUUID() }
    const messages = [{ role: 'user', content: cases.COMPUTE } as const]
    const { choices } = await openai.chat.completions.create({ model, messages }, { headers })
    assert.ok(choices[0]!.message.content!.includes(cases.COMMAND))
  },
  async 'chat: wrong key'() {
    const messages = [{ role: 'user', content: cases.HELLO } as const]
    const asked = clientWith(cases.WRONG_KEY).chat.completions.create({ model, messages })
    await assert.rejects(asked, (error) => error instanceof AuthenticationError && error.code === 'invalid_api_key')
  },
})
