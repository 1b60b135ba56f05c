// @ts-nocheck -- its packages are not those of this project
/** The Agents SDK of OpenAI for npm: the server is the model of an agent, by either API. */
import assert from 'node:assert/strict'
import {
  Agent,
  hostedMcpTool,
  OpenAIChatCompletionsModel,
  OpenAIResponsesModel,
  run,
  setTracingDisabled,
  tool,
} from '@openai/agents'
import OpenAI, { AuthenticationError } from 'openai'
import * as cases from './cases.ts'

setTracingDisabled(true)

const lookUp = tool({
  name: 'look_up',
  description: 'Looks an order up.',
  strict: false,
  parameters: { type: 'object', properties: { number: { type: 'string' } }, required: [], additionalProperties: true },
  execute: async () => cases.SHIPPED,
})

function agentWith({ Model = OpenAIResponsesModel, tools = [], key = cases.KEY_OF_SERVER } = {}) {
  const client = new OpenAI({ apiKey: key, baseURL: `${cases.URL_OF_SERVER}/v1`, maxRetries: 0 })
  return new Agent({ name: 'remote', model: new Model(client, 'default'), tools })
}

/** Reads the stream of the run to its end. */
async function answerOf(agent, text, options = {}) {
  const result = await run(agent, text, { stream: true, ...options })
  for await (const event of result) void event
  await result.completed
  return result.finalOutput
}

/** Its runs are in a conversation of the server. Without one, each request has all items since the first message. */
async function inConversation(agent, text) {
  const openai = new OpenAI({ apiKey: cases.KEY_OF_SERVER, baseURL: `${cases.URL_OF_SERVER}/v1` })
  const { id } = await openai.conversations.create({ model: 'default' })
  return await answerOf(agent, text, { conversationId: id })
}

async function decide(approve, isNamed = true) {
  const asked = []
  const approvals = hostedMcpTool({
    serverLabel: 'agent-server',
    serverUrl: 'https://agent-server.invalid',
    requireApproval: 'always',
    onApproval: async (_, { rawItem }) => {
      asked.push(rawItem.arguments ?? rawItem.providerData.arguments)
      return approve ? { approve } : { approve, reason: cases.REASON }
    },
  })
  const agent = agentWith({ tools: [approvals] })
  const answer = await (isNamed ? inConversation(agent, cases.COMPUTE) : answerOf(agent, cases.COMPUTE))
  assert.deepEqual(asked.map(JSON.parse), [{ command: cases.COMMAND }])
  return answer
}

await cases.runCases({
  async 'responses: text'() {
    assert.equal(await answerOf(agentWith(), cases.SLOWLY), cases.WORDS)
  },
  async 'responses: tool'() {
    assert.match(await answerOf(agentWith(), cases.PLAN), /Read: /)
  },
  async 'responses: allow'() {
    assert.match(await decide(true), cases.RESULT)
  },
  async 'responses: deny'() {
    cases.assertDenied(await decide(false), cases.REASON)
  },
  async 'responses: allow, with all items as input'() {
    assert.match(await decide(true, false), cases.RESULT)
  },
  async 'responses: function'() {
    assert.equal(await inConversation(agentWith({ tools: [lookUp] }), cases.LOOK_UP), `Read: ${cases.SHIPPED}`)
  },
  async 'responses: function, with all items as input'() {
    assert.equal(await answerOf(agentWith({ tools: [lookUp] }), cases.LOOK_UP), `Read: ${cases.SHIPPED}`)
  },
  async 'responses: history as input'() {
    const agent = agentWith()
    const first = await run(agent, cases.PLAN)
    const second = await run(agent, [...first.history, { role: 'user', content: cases.HELLO }])
    assert.equal(second.finalOutput, cases.GREETING)
  },
  async 'chat: text'() {
    assert.equal(await answerOf(agentWith({ Model: OpenAIChatCompletionsModel }), cases.SLOWLY), cases.WORDS)
  },
  async 'chat: function'() {
    const agent = agentWith({ Model: OpenAIChatCompletionsModel, tools: [lookUp] })
    assert.equal(await answerOf(agent, cases.LOOK_UP), `Read: ${cases.SHIPPED}`)
  },
  async 'wrong key'() {
    const refused = (error) => error instanceof AuthenticationError && error.code === 'invalid_api_key'
    await assert.rejects(run(agentWith({ key: cases.WRONG_KEY }), cases.HELLO), refused)
  },
})
