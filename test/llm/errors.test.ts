import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { describe, expect, test } from 'vitest'
import { HttpLlm } from '../../src/llm/http-llm.ts'
import type { ModelMessage } from '../../src/llm/llm.ts'
import type { Dialects } from '../../src/llm/provider.ts'
import { startScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import { ask, askScript, chatWith, QUESTION } from './asking.ts'

const KEY = 'sk-test-0123456789abcdef'

describe('a refusal is classified by what providers really say', () => {
  test.each([
    // OpenAI
    [401, { message: 'Incorrect API key provided', type: 'invalid_request_error', code: 'invalid_api_key' }, 'auth'],
    [429, { message: 'You exceeded your current quota, please check', code: 'insufficient_quota' }, 'quota'],
    [
      429,
      { message: 'Rate limit reached for gpt-5 in organization on tokens per min', code: 'rate_limit_exceeded' },
      'rate_limit',
    ],
    [
      400,
      { message: "This model's maximum context length is 128000 tokens.", code: 'context_length_exceeded' },
      'context_window',
    ],
    [
      404,
      { message: 'The model `gpt-9` does not exist or you do not have access to it.', code: 'model_not_found' },
      'config',
    ],
    [400, { message: "Unsupported value: 'temperature' does not support 0.2", param: 'temperature' }, 'config'],
    [500, { message: 'The server had an error while processing your request' }, 'network'],
    [503, { message: 'The engine is currently overloaded' }, 'rate_limit'],
    // Azure
    [401, { code: '401', message: 'Access denied due to invalid subscription key or wrong API endpoint.' }, 'auth'],
    [404, { code: 'DeploymentNotFound', message: 'The API deployment for this resource does not exist.' }, 'config'],
    [
      429,
      { code: '429', message: 'Requests to the ChatCompletions_Create Operation have exceeded call rate limit' },
      'rate_limit',
    ],
    // OpenRouter
    [402, { code: 402, message: 'Insufficient credits. Add more using https://openrouter.ai/credits' }, 'quota'],
    [
      400,
      {
        code: 400,
        message: 'Provider returned error',
        metadata: { raw: 'prompt is too long: 210000 tokens > 200000 maximum' },
      },
      'context_window',
    ],
    // Anthropic
    [529, { type: 'overloaded_error', message: 'Overloaded' }, 'rate_limit'],
    [400, { type: 'invalid_request_error', message: 'Your credit balance is too low to access the API' }, 'quota'],
    [413, { type: 'request_too_large', message: 'Request exceeds the maximum size' }, 'context_window'],
    // vLLM, Ollama, Gemini, Bedrock behind a proxy
    [
      400,
      {
        object: 'error',
        message: "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens",
        code: 400,
      },
      'context_window',
    ],
    [404, { message: 'model "qwen9" not found, try pulling it first', type: 'api_error' }, 'config'],
    [
      400,
      {
        status: 'INVALID_ARGUMENT',
        message: 'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
      },
      'context_window',
    ],
    [400, { status: 'INVALID_ARGUMENT', message: 'API key not valid. Please pass a valid API key.' }, 'auth'],
    // xAI, Copilot, Kimi
    [
      400,
      { error: "This model's maximum prompt length is 131072 but the request contains 537812 tokens.", code: 'x' },
      'context_window',
    ],
    [
      400,
      { message: 'prompt token count of 135482 exceeds the limit of 128000', code: 'model_max_prompt_tokens_exceeded' },
      'context_window',
    ],
    [
      400,
      { message: 'Invalid request: Your request exceeded model token limit: 262144', type: 'invalid_request_error' },
      'context_window',
    ],
    [400, { message: 'Input token length too long', type: 'invalid_request_error' }, 'context_window'],
    // Z.ai, Qwen, Together
    [400, { message: 'Prompt exceeds max length', code: '1261' }, 'context_window'],
    [
      400,
      { message: 'InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]' },
      'context_window',
    ],
    [400, { message: '`inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000' }, 'context_window'],
    // Azure's filter looks at what is asked, too
    [
      400,
      { code: 'content_filter', message: "The response was filtered due to Azure OpenAI's content management policy." },
      'content_filter',
    ],
    [429, { message: 'Too many tokens, please wait before trying again.' }, 'rate_limit'],
    [403, { message: 'Country, region, or territory not supported' }, 'auth'],
  ])('%i %j: %s', async (status, error, type) => {
    const heard = await askScript([{ status, error }])
    expect(heard.error?.message).toContain(`(HTTP ${status})`)
    expect(heard.error?.type).toBe(type)
    expect(heard.error?.retryable).toBe(['network', 'rate_limit'].includes(type))
  })

  test.each([
    ['a bare document', '{"object":"error","message":"model x not found","code":404}', 404, 'config'],
    [
      'a list around it',
      '[{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"API key not valid."}}]',
      400,
      'auth',
    ],
    ['a detail', '{"detail":"Not Found"}', 404, 'config'],
    ['a text for an error', '{"error":"model requires more system memory"}', 500, 'network'],
    ['plain text', 'upstream connect error', 503, 'network'],
    ['nothing', '', 502, 'network'],
    ['a page', '<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>', 502, 'network'],
  ])('if the body is %s', async (_, body, status, type) => {
    const { error } = await askScript([{ raw: [body], status, headers: { 'content-type': 'text/plain' } }])
    expect(error?.type).toBe(type)
    expect(error?.message).not.toMatch(/<|nginx/)
  })
})

describe('the message of an error', () => {
  test('says what to do and quotes the provider', async () => {
    const { error } = await askScript([{ status: 401, error: { message: 'Nope.' } }])
    expect(error?.message).toBe(
      'The provider refused the credentials: check llm_config.api_key. It said (HTTP 401): Nope.',
    )
  })

  test('names the model that is unknown, as the provider was given it', async () => {
    const { error } = await askScript([{ status: 404, error: { message: 'The model does not exist' } }], {
      model: 'openai/x9',
    })
    expect(error?.message).toContain('the model "x9"')
  })

  test('holds no key, no header value, no secret and no echo of the request', async () => {
    const message = `bad key ${KEY}, tenant tenant-4711, token s3cret-value: [{'msg': 'x', 'input': {'content': 'What is here?'}}]`
    const { error } = await askScript(
      [{ status: 400, error: { message } }],
      { api_key: KEY, extra_headers: { 'X-Tenant': 'tenant-4711' } },
      { redact: (text) => text.replaceAll('s3cret-value', '<secret:TOKEN>') },
    )
    expect(error?.message).toContain('<secret:TOKEN>')
    for (const leak of [KEY, 'tenant-4711', 's3cret', 'What is here']) {
      expect(`${error?.message}${error?.stack}${String(error?.cause)}`).not.toContain(leak)
    }
  })

  test('is bounded and on one line', async () => {
    const { error } = await askScript([{ status: 400, error: { message: 'long\n'.repeat(10_000) } }])
    expect(error?.message.length).toBeLessThan(800)
    expect(error?.message).not.toContain('\n')
  })
})

describe('a connection that fails', () => {
  test('because nothing listens says so', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const { port } = server.address() as AddressInfo
    await new Promise((resolve) => server.close(resolve))
    const config = { model: 'm', base_url: `http://127.0.0.1:${port}/v1`, num_retries: 0 }
    const { error } = await ask(new HttpLlm({ config }))
    expect(error).toMatchObject({ type: 'network', retryable: true })
    expect(error?.message).toContain(`Nothing listens at http://127.0.0.1:${port}`)
  })

  test('because of TLS or its absence is a configuration error', async () => {
    await using model = await startScriptedModel([{ text: 'a' }])
    const { error } = await ask(chatWith(model, { base_url: model.baseUrl.replace('http:', 'https:') }))
    expect(error).toMatchObject({ type: 'config', retryable: false })
  })

  test('because a header cannot be written does not show the header', async () => {
    const { error } = await askScript([{ text: 'a' }], { api_key: `${KEY}\nx` })
    expect(error).toMatchObject({ type: 'config', cause: undefined })
    expect(error?.message).toContain('llm_config.api_key')
    expect(`${error?.message}${error?.stack}`).not.toContain(KEY)
  })

  test('with a redirect is not followed, so the key is not sent elsewhere', async () => {
    await using other = await startScriptedModel([{ text: 'stolen' }])
    const headers = { location: `${other.baseUrl}/chat/completions` }
    const { error } = await askScript([{ status: 307, headers }], { api_key: KEY })
    expect(error).toMatchObject({ type: 'config' })
    expect(other.requests).toHaveLength(0)
  })
})

describe('an unsupported feature of an endpoint', () => {
  test.each([
    'registry.ollama.ai/library/gemma2:2b does not support tools',
    'No endpoints found that support tool use. To learn more about provider routing, visit',
    '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
    '`tool calling` is not supported with this model',
    "Unsupported parameter: 'tools' is not supported with this model.",
  ])('sets `lacksTools`: %s', async (message) => {
    const { error } = await askScript([{ status: 400, error: { message } }])
    expect(error?.lacksTools).toBe(true)
  })

  test('is not confused with other refusals', async () => {
    const { error } = await askScript([{ status: 400, error: { message: "Invalid schema for function 'Bash'" } }])
    expect(error?.lacksTools).toBe(false)
  })

  test.each([
    [
      'max_tokens',
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    ],
    ['stream_options', 'stream_options: Extra inputs are not permitted'],
  ])('is learnt from the refusal of %s, once', async (field, message) => {
    await using model = await startScriptedModel(({ body }) =>
      field in body ? { status: 400, error: { message } } : { text: 'done' },
    )
    const llm = chatWith(model, { max_output_tokens: 100 })
    expect((await ask(llm)).answer?.text).toBe('done')
    expect((await ask(llm)).answer?.text).toBe('done')
    expect(model.requests).toHaveLength(3)
  })

  test('is not a reason to repeat a request that has nothing of what is refused', async () => {
    const messages = [
      "Unsupported parameter: 'max_tokens' is not supported with this model.",
      'image input is not supported',
      "Unexpected role 'user' after role 'tool'",
    ]
    for (const message of messages) {
      const { error, requests } = await askScript(() => ({ status: 400, error: { message } }))
      expect(error?.type).toBe('config')
      expect(requests, message).toHaveLength(1)
    }
  })

  test('is learnt for its holder, by endpoint and model', async () => {
    await using model = await startScriptedModel(({ body }) =>
      'stream_options' in body ? { status: 400, error: { message: 'stream_options: unknown' } } : { text: 'done' },
    )
    const dialects: Dialects = new Map()
    for (const name of ['one', 'one', 'other']) await ask(chatWith(model, { model: name }, { dialects }))
    expect(model.requests.map(({ body }) => [body['model'], 'stream_options' in body])).toEqual([
      ['one', true],
      ['one', false],
      ['one', false],
      ['other', true],
      ['other', false],
    ])
  })

  test('adds no message that came after the request', async () => {
    const messages: ModelMessage[] = [...QUESTION.messages]
    await using model = await startScriptedModel(({ body }) => {
      if (!('stream_options' in body)) return { text: 'done' }
      messages.push({ role: 'user', content: [{ type: 'text', text: 'One more thing.' }] })
      return { status: 400, error: { message: 'stream_options: unknown' } }
    })
    await ask(chatWith(model), { ...QUESTION, messages })
    expect(model.requests[1]!.body.messages).toEqual(model.requests[0]!.body.messages)
  })

  test('does not lead in circles', async () => {
    await using model = await startScriptedModel(() => ({
      status: 400,
      error: { message: 'max_tokens, max_completion_tokens and stream_options are not supported' },
    }))
    expect((await ask(chatWith(model, { max_output_tokens: 1 }))).error?.type).toBe('config')
    expect(model.requests.length).toBeLessThanOrEqual(4)
  })
})

test('a configuration without a model, or a model without a known host, is reported as such', async () => {
  for (const config of [{}, { model: 'bedrock/claude', api_key: KEY }]) {
    const { error } = await ask(new HttpLlm({ config }), QUESTION)
    expect(error).toMatchObject({ type: 'config', retryable: false })
    expect(error?.message).toContain('llm_config.')
  }
})
