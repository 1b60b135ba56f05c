import { afterEach, describe, expect, test, vi } from 'vitest'
import type { ModelMessage } from '../../src/llm/llm.ts'
import type { Payload } from '../../src/llm/http-llm.ts'
import { startScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import { ask, askScript, chatWith, QUESTION } from './asking.ts'

const done = [{ text: 'done' }]

async function bodyOf(config: object, messages: readonly ModelMessage[] = QUESTION.messages) {
  await using model = await startScriptedModel(() => ({ text: 'done' }))
  await ask(chatWith(model, config), { ...QUESTION, messages })
  return model.requests[0]!.body
}

describe('a request', () => {
  test('is the system prompt, the messages and the tools, and nothing that was not set', async () => {
    expect(await bodyOf({})).toEqual({
      model: 'test-model',
      stream: true,
      stream_options: { include_usage: true },
      tools: [
        {
          type: 'function',
          function: { name: 'Bash', description: 'Runs a command.', parameters: { type: 'object', properties: {} } },
        },
      ],
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'What is here?' },
      ],
    })
  })

  test('contains the configured fields, overridden by extra_body', async () => {
    const config = {
      temperature: 0,
      top_p: 0.9,
      top_k: 40,
      reasoning_effort: 'low',
      max_output_tokens: 99,
      tool_choice: 'required',
      extra_body: { top_k: 41, provider: { order: ['a'] }, messages: [] },
    }
    expect(await bodyOf(config)).toMatchObject({
      temperature: 0,
      top_p: 0.9,
      top_k: 41,
      reasoning_effort: 'low',
      max_tokens: 99,
      tool_choice: 'required',
      provider: { order: ['a'] },
      messages: [{ role: 'system' }, { role: 'user' }],
    })
  })

  test('limits OpenAI reasoning models by the one name they accept', async () => {
    const body = await bodyOf({ model: 'gpt-5', max_output_tokens: 9 })
    expect(body).toMatchObject({ max_completion_tokens: 9 })
    expect(body).not.toHaveProperty('max_tokens')
  })

  test('without tools has neither tools nor a tool choice, and without a prompt no system message', async () => {
    await using model = await startScriptedModel(done)
    await ask(chatWith(model, { tool_choice: 'auto' }), { ...QUESTION, system: '', tools: [] })
    expect(model.requests[0]?.body).not.toHaveProperty('tools')
    expect(model.requests[0]?.body).not.toHaveProperty('tool_choice')
    expect(model.requests[0]?.body.messages.map(({ role }) => role)).toEqual(['user'])
  })

  test('shows images as data URLs', async () => {
    const image = { type: 'image', media_type: 'image/png', data: 'iVBORw0=' } as const
    const body = await bodyOf({}, [{ role: 'user', content: [{ type: 'text', text: 'See:' }, image] }])
    expect(body.messages[1]?.content).toEqual([
      { type: 'text', text: 'See:' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0=' } },
    ])
  })

  describe('with an image that the endpoint refuses', () => {
    const image = { type: 'image', media_type: 'image/png', data: 'iVBORw0=' } as const
    const request = {
      ...QUESTION,
      messages: [{ role: 'user', content: [{ type: 'text', text: 'See:' }, image] }],
    } as const

    test.each([
      ['OpenAI', 400, { message: 'Invalid content type. image_url is only supported by certain models.' }],
      [
        'DeepSeek',
        400,
        {
          message:
            'Failed to deserialize the JSON body into the target type: messages[1]: unknown variant `image_url`, expected `text`',
        },
      ],
      ['OpenRouter', 404, { message: 'No endpoints found that support image input' }],
      ['llama.cpp', 500, { message: 'image input is not supported - hint: you may need to provide the mmproj' }],
      ['vLLM', 400, { message: 'scripted is not a multimodal model' }],
      [
        'Groq',
        400,
        {
          message:
            "'messages.1' : for 'role:user' the following must be satisfied[('messages.1.content' : value must be a string)]: content must be a string",
        },
      ],
    ])('is sent again without it, and so are later requests: %s', async (_, status, error) => {
      await using model = await startScriptedModel(({ text }) =>
        text.includes('image_url') ? { status, error } : { text: 'I cannot see it.' },
      )
      const llm = chatWith(model)
      expect((await ask(llm, request)).answer?.text).toBe('I cannot see it.')
      expect(model.requests.at(-1)!.body.messages[1]).toEqual({
        role: 'user',
        content: expect.stringMatching(/^See:\n\n\[An image \(image\/png\) was left out/),
      })
      const count = model.requests.length
      await ask(llm, request)
      expect(model.requests).toHaveLength(count + 1)
      expect(model.requests.at(-1)!.text).toBe(model.requests.at(-2)!.text)
    })
  })

  test('repeats calls as the model wrote them, and makes what an endpoint would refuse acceptable', async () => {
    const toolCalls = [
      { id: 'a', name: 'Bash', arguments: '{"x" : 1.0}' },
      { id: 'b', name: 'functions.Bash', arguments: '{"x":' },
      { id: 'c', name: '', arguments: '[]' },
    ]
    const body = await bodyOf({}, [
      ...QUESTION.messages,
      { role: 'assistant', text: '', toolCalls },
      { role: 'tool', toolCallId: 'a', content: 'ok' },
    ])
    expect(body.messages[2]).toEqual({
      role: 'assistant',
      content: null,
      tool_calls: [
        { id: 'a', type: 'function', function: { name: 'Bash', arguments: '{"x" : 1.0}' } },
        {
          id: 'b',
          type: 'function',
          function: { name: 'functions_Bash', arguments: '{"invalid_arguments":"{\\"x\\":"}' },
        },
        { id: 'c', type: 'function', function: { name: 'unknown', arguments: '{"invalid_arguments":"[]"}' } },
      ],
    })
    expect(body.messages[3]).toEqual({ role: 'tool', tool_call_id: 'a', content: 'ok' })
  })

  test('contains no half of a character: those become U+FFFD, wherever they are', async () => {
    const half = 'a\ud83d b'
    await using model = await startScriptedModel(() => ({ text: 'done' }))
    const messages: ModelMessage[] = [
      { role: 'user', content: [{ type: 'text', text: `${half} 🌳` }] },
      {
        role: 'assistant',
        text: half,
        toolCalls: [
          { id: 'a', name: 'Bash', arguments: String.raw`{"command":"\ud83c\udf33 \uD83D \\ud83d"}` },
          { id: 'b', name: 'Bash', arguments: `{"${half}":` },
        ],
      },
      { role: 'tool', toolCallId: 'a', content: half },
      { role: 'tool', toolCallId: 'b', content: half },
    ]
    const tools = [{ name: 'Bash', description: half, inputSchema: { title: half } }]
    await ask(chatWith(model), { system: half, messages, tools })
    const { text, body } = model.requests[0]!
    const [system, user, assistant, tool] = body.messages
    for (const each of [system, assistant, tool]) expect(each!.content).toBe('a\ufffd b')
    expect(user!.content).toBe('a\ufffd b 🌳')
    const calls = assistant!['tool_calls'] as { function: { arguments: string } }[]
    const inputs = calls.map((made): unknown => JSON.parse(made.function.arguments))
    expect(inputs).toEqual([{ command: String.raw`🌳 ${'\ufffd'} \ud83d` }, { invalid_arguments: '{"a\ufffd b":' }])
    expect(text.isWellFormed()).toBe(true)
    // Only the escape of a backslash may stand before it.
    expect(text.replaceAll('\\\\', '')).not.toMatch(/\\ud83d/i)
  })

  test('has an answer between a tool and the user for Mistral’s models, and for others that ask for it', async () => {
    const messages: ModelMessage[] = [
      ...QUESTION.messages,
      { role: 'assistant', text: '', toolCalls: [{ id: 'a', name: 'Bash', arguments: '{}' }] },
      { role: 'tool', toolCallId: 'a', content: 'ok' },
      ...QUESTION.messages,
      ...QUESTION.messages,
    ]
    const strict = ['system', 'user', 'assistant', 'tool', 'assistant', 'user', 'assistant', 'user']
    const rolesOf = ({ messages }: { messages: readonly { role: string }[] }) => messages.map(({ role }) => role)
    expect(rolesOf(await bodyOf({ model: 'mistralai/Devstral-Small' }, messages))).toEqual(strict)
    expect(rolesOf(await bodyOf({ model: 'gpt-5' }, messages))).toEqual(strict.filter((_, at) => at !== 4 && at !== 6))
    for (const message of [
      "Unexpected role 'user' after role 'tool'",
      'Conversation roles must alternate user/assistant/user/assistant/...',
    ]) {
      await using model = await startScriptedModel(({ body }) =>
        rolesOf(body).join() === strict.join() ? { text: 'done' } : { status: 400, error: { message } },
      )
      expect((await ask(chatWith(model), { ...QUESTION, messages })).answer?.text).toBe('done')
    }
  })

  test('gives reasoning back to the models that want it, and to no other', async () => {
    const messages: ModelMessage[] = [
      ...QUESTION.messages,
      { role: 'assistant', text: 'a', reasoning: 'hm', toolCalls: [] },
    ]
    expect((await bodyOf({ model: 'deepseek-reasoner' }, messages)).messages[2]).toHaveProperty(
      'reasoning_content',
      'hm',
    )
    expect((await bodyOf({ model: 'gpt-5' }, messages)).messages[2]).not.toHaveProperty('reasoning_content')
  })

  test('extends the one before byte for byte, so that the provider finds it in its cache', async () => {
    await using model = await startScriptedModel(() => ({
      text: 'next',
      calls: [{ name: 'Bash', arguments: { n: 1 } }],
    }))
    const llm = chatWith(model)
    const messages = [...QUESTION.messages]
    for (let step = 0; step < 5; step++) {
      const { answer } = await ask(llm, { ...QUESTION, messages: [...messages] })
      messages.push({ role: 'assistant', text: answer!.text, toolCalls: answer!.toolCalls })
      for (const call of answer!.toolCalls) messages.push({ role: 'tool', toolCallId: call.id, content: 'ok' })
    }
    const texts = model.requests.map(({ text }) => text)
    for (const [at, text] of texts.slice(1).entries()) expect(text.startsWith(texts[at]!.slice(0, -2))).toBe(true)
  })

  test('takes no id for a call that an earlier one has', async () => {
    const { answer } = await askScript([{ calls: [{ id: 'call_0', name: 'Bash', arguments: {} }] }])
    expect(answer?.toolCalls[0]?.id).toBe('call_0')
    await using model = await startScriptedModel(() => ({ calls: [{ id: 'call_0', name: 'Bash', arguments: {} }] }))
    const messages: ModelMessage[] = [
      ...QUESTION.messages,
      { role: 'assistant', text: '', toolCalls: answer!.toolCalls },
      { role: 'tool', toolCallId: 'call_0', content: 'ok' },
    ]
    const again = await ask(chatWith(model), { ...QUESTION, messages })
    expect(again.answer?.toolCalls[0]?.id).not.toBe('call_0')
  })
})

describe('the wire', () => {
  afterEach(() => vi.unstubAllEnvs())

  test('carries key, extra headers and api version', async () => {
    const { requests } = await askScript(done, {
      api_key: 'sk-1',
      api_version: '2025-04-01-preview',
      extra_headers: { 'X-Team': 'blue' },
    })
    expect(requests[0]?.headers).toMatchObject({ authorization: 'Bearer sk-1', 'x-team': 'blue' })
    expect(requests[0]?.path).toBe('/v1/chat/completions?api-version=2025-04-01-preview')
  })

  test('carries nothing from the environment of the server', async () => {
    vi.stubEnv('OPENAI_API_KEY', 'sk-environment')
    vi.stubEnv('OPENAI_ADMIN_KEY', 'sk-environment')
    vi.stubEnv('OPENAI_ORG_ID', 'org-environment')
    vi.stubEnv('OPENAI_PROJECT_ID', 'project-environment')
    vi.stubEnv('OPENAI_CUSTOM_HEADERS', 'X-Gateway: environment')
    vi.stubEnv('OPENAI_BASE_URL', 'http://127.0.0.1:1/environment')
    const { answer, requests } = await askScript(done)
    expect(answer?.text).toBe('done')
    expect(JSON.stringify(requests[0]?.headers)).not.toContain('environment')
    expect(requests[0]?.headers).not.toHaveProperty('authorization')
  })

  test('goes through a given fetch', async () => {
    const urls: (string | URL)[] = []
    const { answer } = await askScript(
      done,
      {},
      {
        fetch: (url, init) => {
          urls.push(url instanceof Request ? url.url : url)
          return fetch(url, init)
        },
      },
    )
    expect(answer?.text).toBe('done')
    expect(urls).toHaveLength(1)
  })

  test('is logged verbatim, but redacted, if enabled', async () => {
    const payloads: Payload[] = []
    const redact = (text: string) => text.replaceAll('here', '<secret:PLACE>')
    const { requests } = await askScript(
      [{ text: 'It is here.' }],
      {},
      { redact, logPayload: (each) => payloads.push(each) },
    )
    expect(payloads.map(({ direction }) => direction)).toEqual(['request', 'response'])
    expect(payloads[0]?.body).toBe(redact(requests[0]!.text))
    expect(payloads[1]?.body).toContain('<secret:PLACE>')
    expect(JSON.parse(payloads[1]!.body)).toMatchObject({ text: 'It is <secret:PLACE>.', finish_reason: 'stop' })
  })

  test('is logged also when it failed', async () => {
    const payloads: Payload[] = []
    await askScript([{ status: 400, error: { message: 'no' } }], {}, { logPayload: (each) => payloads.push(each) })
    expect(payloads[1]?.body).toContain('400 no')
  })
})
