/** Endpoints of models that fail, stay silent or are not allowed: one conversation has the trouble, and no other. */
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { startScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import { setStage } from '../support/agent.ts'
import { startServer } from '../support/server.ts'
import { startSilentEndpoint } from '../support/silent-endpoint.ts'

const shared = await startServer({ env: { OPENHANDS_MAX_CONCURRENT_RUNS: '1' } })
afterAll(() => shared[Symbol.asyncDispose]())

const REQUEST = { message: { role: 'user', content: 'Begin.' }, run: true }

test.each([
  ['api_key', 'sk-…'],
  ['api_key', 'sk-key\n'],
  ['extra_headers', { 'x y': '1' }],
  ['extra_headers', { 'x-y': 'a\r\nb: c' }],
  ['extra_headers', { 'Transfer-Encoding': 'chunked' }],
  // It would lead the key to another server with the same address.
  ['extra_headers', { Host: 'evil.example.com' }],
])('llm_config.%s that cannot be sent is refused, and not repeated: %j', async (field, value) => {
  const llm_config = { model: 'm', base_url: 'https://127.0.0.1:9/v1' }
  const wrong = { ...llm_config, [field]: value }
  const refused = await shared.call('POST', '/conversations', { llm_config: wrong })
  expect(refused).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
  expect(refused.body.message).toContain(`llm_config.${field}`)
  expect(JSON.stringify(refused.body)).not.toMatch(/sk-|x y|a\\r/)
  const { body } = await shared.call('POST', '/conversations', { llm_config })
  expect(
    await shared.call('PUT', `/conversations/${body.id}/config`, { llm_config: { [field]: value } }),
  ).toMatchObject({
    status: 400,
  })
})

describe('an https endpoint that accepts and stays silent', () => {
  test('holds up neither pause nor DELETE, and no run slot', async () => {
    await using endpoint = await startSilentEndpoint()
    await using stage = await setStage(() => ({ text: 'Hello.' }), shared)
    const silent = { model: 'm', base_url: `https://127.0.0.1:${endpoint.port}/v1`, api_key: 'some-key' }
    const [first, second] = [await stage.create({ llm_config: silent }), await stage.create({ llm_config: silent })]
    await stage.server.call('POST', `/conversations/${first}/messages`, REQUEST)
    await endpoint.connected
    const paused = await stage.server.call('POST', `/conversations/${first}/pause`, {})
    expect(paused).toMatchObject({ status: 200, body: { status: 'paused' } })
    // No handshake has failed.
    expect((await stage.events(first)).filter(({ type }) => type === 'ErrorEvent')).toEqual([])
    await stage.server.call('POST', `/conversations/${second}/messages`, REQUEST)
    expect((await stage.server.call('DELETE', `/conversations/${second}`)).status).toBe(204)
    // The one slot there is has become free.
    const events = await stage.say(await stage.create(), 'Hello?')
    expect(events.find(({ type }) => type === 'Result')).toMatchObject({ stop_reason: 'completed' })
  })

  test('as a callback holds up no DELETE and no stop of the server', async () => {
    await using endpoint = await startSilentEndpoint()
    await using stage = await setStage(() => ({ text: 'Hello.' }), { env: { OPENHANDS_CALLBACK_ALLOW: '127.0.0.1' } })
    const url = `https://127.0.0.1:${endpoint.port}/`
    const withCallback = async () => {
      const id = await stage.create()
      expect(await stage.server.call('POST', `/conversations/${id}/callbacks`, { url })).toMatchObject({ status: 201 })
      await stage.say(id, 'Hello?')
      return id
    }
    const id = await withCallback()
    await endpoint.connected
    expect((await stage.server.call('DELETE', `/conversations/${id}`)).status).toBe(204)
    await withCallback()
    expect(await stage.server.stop()).toBe(0)
  })
})

describe('with OPENHANDS_LLM_ALLOW', () => {
  test('a conversation can be created for and moved to allowed endpoints only', async () => {
    await using stage = await setStage(() => ({ text: 'Hello.' }))
    const listed = stage.model.baseUrl
    await stage.server.restart('SIGTERM', { OPENHANDS_LLM_ALLOW: `${new URL(listed).origin},public` })
    const id = await stage.create()
    const events = await stage.say(id, 'Hello?')
    expect(events.find(({ type }) => type === 'Result')).toMatchObject({ final_text: 'Hello.' })
    for (const base_url of [
      'http://127.0.0.1:1/v1',
      'http://[::1]/v1',
      'http://169.254.169.254/',
      'http://localhost:1/',
    ]) {
      const refused = { status: 400, body: { error: 'llm_endpoint_refused' } }
      expect(await stage.server.call('POST', '/conversations', { llm_config: { model: 'm', base_url } })).toMatchObject(
        refused,
      )
      expect(await stage.server.call('PUT', `/conversations/${id}/config`, { llm_config: { base_url } })).toMatchObject(
        refused,
      )
    }
    expect((await stage.server.call('GET', `/conversations/${id}`)).body.llm_config.base_url).toBe(listed)
  })

  test('a conversation from before the list fails its runs with a reason, and sends nothing', async () => {
    await using stage = await setStage(() => ({ text: 'Hello.' }))
    const id = await stage.create()
    await stage.server.restart('SIGTERM', { OPENHANDS_LLM_ALLOW: 'https://api.example.com' })
    const events = await stage.say(id, 'Hello?')
    expect(events.find(({ type }) => type === 'ErrorEvent')).toMatchObject({
      error_type: 'config',
      message: expect.stringContaining('OPENHANDS_LLM_ALLOW'),
    })
    expect(stage.model.requests).toEqual([])
  })

  test("the server's own endpoint need not be named again", async () => {
    const model = await startScriptedModel(() => ({ text: 'Hello.' }))
    onTestFinished(() => model.close())
    const env = { LLM_MODEL: 'scripted', LLM_BASE_URL: model.baseUrl, OPENHANDS_LLM_ALLOW: 'https://api.example.com' }
    await using server = await startServer({ env })
    expect(await server.call('POST', '/conversations', {})).toMatchObject({ status: 201 })
  })
})
