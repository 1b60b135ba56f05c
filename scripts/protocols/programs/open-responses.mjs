// @ts-nocheck -- its packages are not those of this project
/** The provider of the AI SDK for Open Responses: the server is a model. */
import assert from 'node:assert/strict'
import { createOpenResponses } from '@ai-sdk/open-responses'
import { jsonSchema, stepCountIs, streamText, tool } from 'ai'
import * as cases from './cases.ts'

const modelWith = (apiKey) =>
  createOpenResponses({ name: 'agent-server', url: `${cases.URL_OF_SERVER}/v1/responses`, apiKey })('default')

const ask = (prompt, { key = cases.KEY_OF_SERVER, ...more } = {}) =>
  streamText({ model: modelWith(key), prompt, maxRetries: 0, onError() {}, ...more })

const lookUp = tool({
  description: 'Looks an order up.',
  inputSchema: jsonSchema({ type: 'object', properties: { number: { type: 'string' } } }),
  execute: async () => cases.SHIPPED,
})

await cases.runCases({
  async text() {
    const result = ask(cases.SLOWLY)
    const pieces = await Array.fromAsync(result.textStream)
    assert.equal(pieces.join(''), cases.WORDS)
    assert.ok(pieces.length > 1)
    assert.equal(await result.finishReason, 'stop')
    assert.ok((await result.usage).totalTokens > 0)
  },
  async reasoning() {
    assert.equal(await ask(cases.SLOWLY).reasoningText, 'They count.')
  },
  async tool() {
    assert.match(await ask(cases.PLAN).text, /Read: /)
  },
  async function() {
    const result = ask(cases.LOOK_UP, { tools: { look_up: lookUp }, stopWhen: stepCountIs(3) })
    assert.equal(await result.text, `Read: ${cases.SHIPPED}`)
    assert.equal((await result.steps).length, 2)
  },
  async 'wrong key'() {
    const result = ask(cases.HELLO, { key: cases.WRONG_KEY })
    const errors = []
    for await (const part of result.fullStream) if (part.type === 'error') errors.push(part.error)
    assert.equal(errors[0]?.statusCode, 401)
    assert.match(errors[0].responseBody, /invalid_api_key/)
  },
})
