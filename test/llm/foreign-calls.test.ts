/** Tool calls that one endpoint made and another one, or the same, reads again: ids, and what comes with a call. */
import { describe, expect, test } from 'vitest'
import type { AssistantPart } from '../../src/contract/values/message.ts'
import type { ModelMessage } from '../../src/llm/llm.ts'
import type { ScriptedMessage, ScriptedQuestion, ScriptedTurn } from '../../src/llm/scripted/script.ts'
import { startScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import { eventsOf, only, say, setBench, tool } from '../conversations/fixtures.ts'
import { faultsIn } from '../support/chat-requests.ts'
import { QUESTION, ask, chatWith, delta, event, rawTurn, toolCalls } from './asking.ts'

const user = (text: string): ModelMessage => ({ role: 'user', content: [{ type: 'text', text }] })
const called = (id: string, parts?: AssistantPart[]): ModelMessage => ({
  role: 'assistant',
  text: '',
  toolCalls: [{ id, name: 'Bash', arguments: '{}' }],
  ...(parts && { parts }),
})
const result = (toolCallId: string): ModelMessage => ({ role: 'tool', toolCallId, content: 'done' })

const callsIn = (messages: readonly ScriptedMessage[]) =>
  messages.flatMap((message) => (message['tool_calls'] ?? []) as { id: string; extra_content?: object }[])
const idsIn = (messages: readonly ScriptedMessage[]) =>
  messages.flatMap(({ tool_call_id: id }) => (typeof id === 'string' ? [id] : []))

const refuse = (message: string): ScriptedTurn => ({ status: 400, error: { message } })

describe('ids of calls', () => {
  const mistral = ({ messages }: ScriptedQuestion): ScriptedTurn => {
    const wrong = callsIn(messages).find(({ id }) => !/^[a-zA-Z0-9]{9}$/.test(id))
    if (wrong) return refuse(`Tool call id was ${wrong.id} but must be a-z, A-Z, 0-9, with a length of 9.`)
    return { text: 'done' }
  }

  test.each([
    ['from its name', 'mistral-large', 1],
    ['from a refusal', 'my-model', 2],
  ])(
    'of other models are replaced where an endpoint wants nine characters, which it knows %s',
    async (_, name, asked) => {
      await using model = await startScriptedModel(mistral)
      const messages = [
        user('Hi'),
        called('toolu_01abc'),
        result('toolu_01abc'),
        called('abcDEF123'),
        result('abcDEF123'),
      ]
      const { answer } = await ask(chatWith(model, { model: name }), { ...QUESTION, messages })
      expect(answer?.text).toBe('done')
      expect(model.requests).toHaveLength(asked)
      const sent = model.requests.at(-1)!.messages
      expect(callsIn(sent).map(({ id }) => id)).toEqual([expect.stringMatching(/^[0-9a-f]{9}$/), 'abcDEF123'])
      expect(faultsIn(sent)).toEqual([])
    },
  )

  test('that are longer than OpenAI accepts are replaced after its refusal', async () => {
    const script = ({ messages }: ScriptedQuestion) => {
      const long = idsIn(messages).find((id) => id.length > 40)
      return long ? refuse("Invalid 'messages[2].tool_calls[0].id': string too long. Expected 40.") : { text: 'done' }
    }
    await using model = await startScriptedModel(script)
    const id = 'call_0199a1f2-7701-7a10-b0c4-5d2e3f4a5b6c'
    const { answer } = await ask(chatWith(model), { ...QUESTION, messages: [user('Hi'), called(id), result(id)] })
    expect(answer?.text).toBe('done')
    expect(faultsIn(model.requests.at(-1)!.messages)).toEqual([])
  })

  test('with kilobytes, as LiteLLM sends for Gemini, become short ones', async () => {
    const id = `call_1__thought__${'s'.repeat(4000)}`
    const first = { index: 0, id, function: { name: 'Bash', arguments: '{"a":' } }
    const rest = { index: 0, id, function: { arguments: '1}' } }
    await using model = await startScriptedModel(() =>
      rawTurn(delta({ tool_calls: [first] }), delta({ tool_calls: [rest] }), toolCalls),
    )
    const { answer } = await ask(chatWith(model))
    expect(answer?.toolCalls).toEqual([
      { id: expect.stringMatching(/^call_[0-9a-f]{32}$/), name: 'Bash', arguments: '{"a":1}' },
    ])
  })
})

describe('the signatures of Gemini', () => {
  const missing = 'Function call is missing a thought_signature in functionCall parts.'
  const signature = (data: string) => ({ google: { thought_signature: data } })

  /** Signs the first of two calls, as Gemini does, and wants the signature back. */
  const gemini = ({ messages }: ScriptedQuestion): ScriptedTurn => {
    const calls = callsIn(messages)
    if (calls.length > 0 && !calls[0]?.extra_content) return refuse(missing)
    if (calls.length > 0) return { text: 'done' }
    const piece = (index: number, extra: object = {}) => ({
      index,
      id: `function-call-${index}`,
      type: 'function',
      function: { name: 'Work', arguments: '{}' },
      ...extra,
    })
    return {
      raw: [
        event(delta({ role: 'assistant', tool_calls: [piece(0, { extra_content: signature('EpYCCpMC') })] })),
        event(delta({ role: 'assistant', tool_calls: [piece(1)] })),
        event(toolCalls),
        'data: [DONE]\n\n',
      ],
    }
  }

  test('are stored, and sent back with their call, also after a restart', async () => {
    await using bench = await setBench({ script: gemini, tools: [tool('Work', () => ({ output: 'ok' }))] })
    const first = await bench.converse()
    expect(await say(first)).toMatchObject({ stop_reason: 'completed', steps: 2 })
    await bench.restart()
    const conversation = await bench.manager.open(first.id)
    expect(await say(conversation, 'again')).toMatchObject({ stop_reason: 'completed' })
    const sent = bench.model.requests.at(-1)!.messages
    expect(callsIn(sent).map((each) => each.extra_content)).toEqual([signature('EpYCCpMC'), undefined])
    expect(sent.slice(0, 5)).toEqual(bench.model.requests.at(-2)!.messages.slice(0, 5))
    expect(only(await eventsOf(conversation), 'AssistantMessage')[0]?.content).toEqual([
      {
        type: 'reasoning',
        text: '',
        provider_data: { provider: 'openai', kind: 'tool_call', data: JSON.stringify(signature('EpYCCpMC')) },
      },
    ])
  })

  test('are replaced by a mark for calls that another model made, once the endpoint has refused them', async () => {
    await using model = await startScriptedModel(gemini)
    const messages = [user('Hi'), called('call_1'), result('call_1')]
    expect((await ask(chatWith(model), { ...QUESTION, messages })).answer?.text).toBe('done')
    expect(callsIn(model.requests.at(-1)!.messages)[0]?.extra_content).toEqual(
      signature('skip_thought_signature_validator'),
    )
  })

  test('are left out where an endpoint refuses the field', async () => {
    await using model = await startScriptedModel(({ text }) =>
      text.includes('extra_content') ? refuse("Unrecognized field 'extra_content'") : { text: 'done' },
    )
    const data = JSON.stringify(signature('EpYC'))
    const parts: AssistantPart[] = [
      { type: 'reasoning', text: '', provider_data: { provider: 'openai', kind: 'tool_call', data } },
    ]
    const messages = [user('Hi'), called('call_1', parts), result('call_1')]
    expect((await ask(chatWith(model), { ...QUESTION, messages })).answer?.text).toBe('done')
    expect(model.requests).toHaveLength(2)
  })

  test('of another API are not sent', async () => {
    const script = () => ({ text: 'done' })
    await using model = await startScriptedModel(script)
    const parts: AssistantPart[] = [
      { type: 'reasoning', text: 'hm', provider_data: { provider: 'anthropic', kind: 'signature', data: '{}' } },
    ]
    const messages = [user('Hi'), called('call_1', parts), result('call_1')]
    await ask(chatWith(model), { ...QUESTION, messages })
    expect(callsIn(model.requests[0]!.messages)[0]).not.toHaveProperty('extra_content')
  })
})

describe('the details of the reasoning that OpenRouter sends', () => {
  const text = (more: object) => ({ type: 'reasoning.text', index: 0, format: 'anthropic-claude-v1', ...more })
  const encrypted = {
    type: 'reasoning.encrypted',
    index: 1,
    format: 'google-gemini-v1',
    id: 'tool_0_Work',
    data: 'CiQB',
  }
  const detailsIn = (messages: readonly ScriptedMessage[]) =>
    messages.flatMap((message) => message['reasoning_details'] ?? [])

  /** Streams them in pieces, as the gateway does, and wants them back. */
  const openRouter = ({ messages }: ScriptedQuestion): ScriptedTurn => {
    const wanted = callsIn(messages).length
    if (wanted > 0 && detailsIn(messages).length === 0)
      return refuse('Gemini models require OpenRouter reasoning details to be preserved in each request.')
    if (messages.at(-1)?.role === 'tool') return { text: 'done' }
    const work = { index: 0, id: 'tool_0_Work', type: 'function', function: { name: 'Work', arguments: '{}' } }
    return rawTurn(
      delta({ reasoning: 'I ', reasoning_details: [text({ text: 'I ' })] }),
      delta({ reasoning: 'look.', reasoning_details: [text({ text: 'look.' })] }),
      delta({ reasoning_details: [text({ signature: 'c2ln' })] }),
      delta({ tool_calls: [work], reasoning_details: [encrypted] }),
      toolCalls,
    )
  }

  test('are joined, stored, and sent back with the id that the call has got, also after a restart', async () => {
    await using bench = await setBench({ script: openRouter, tools: [tool('Work', () => ({ output: 'ok' }))] })
    const first = await bench.converse()
    expect(await say(first)).toMatchObject({ stop_reason: 'completed', steps: 2 })
    await bench.restart()
    const conversation = await bench.manager.open(first.id)
    expect(await say(conversation, 'again')).toMatchObject({ stop_reason: 'completed' })
    const { messages } = bench.model.requests.at(-1)!
    const ids = callsIn(messages).map(({ id }) => id)
    expect(new Set(ids).size, 'the gateway counts from zero in each answer').toBe(2)
    expect(detailsIn(messages)).toEqual(
      ids.flatMap((id) => [text({ text: 'I look.', signature: 'c2ln' }), { ...encrypted, id }]),
    )
    const [answer] = only(await eventsOf(conversation), 'AssistantMessage')
    expect(answer?.content).toEqual([
      { type: 'reasoning', text: 'I look.', provider_data: expect.objectContaining({ kind: 'reasoning_details' }) },
    ])
  })

  test('without anything but text are not stored', async () => {
    await using model = await startScriptedModel(() =>
      rawTurn(delta({ reasoning: 'Hm', reasoning_details: [text({ text: 'Hm' })] }), delta({ content: 'Hi' }, 'stop')),
    )
    const { answer } = await ask(chatWith(model))
    expect(answer).toMatchObject({ text: 'Hi', reasoning: 'Hm' })
    expect(answer).not.toHaveProperty('parts')
  })

  test('are left out where an endpoint refuses the field, and have a limit', async () => {
    const data = JSON.stringify({ reasoning_details: [encrypted] })
    const provider_data = { provider: 'openai', kind: 'reasoning_details', data } as const
    const messages = [user('Hi'), called('call_1', [{ type: 'reasoning', text: '', provider_data }]), result('call_1')]
    await using model = await startScriptedModel((question) => {
      if (question.text.includes('reasoning_details')) return refuse("property 'reasoning_details' is unsupported")
      const many = Array.from({ length: 3000 }, () => encrypted)
      return question.text.includes('"tool"') ? { text: 'done' } : rawTurn(delta({ reasoning_details: many }))
    })
    expect((await ask(chatWith(model), { ...QUESTION, messages })).answer?.text).toBe('done')
    expect(model.requests).toHaveLength(2)
    expect((await ask(chatWith(model))).error?.message).toContain('2000 details of its reasoning')
  })
})

test('a limit of the rate teaches nothing about the endpoint, whatever its message quotes', async () => {
  const image = { type: 'image', media_type: 'image/png', data: 'iVBORw0=' } as const
  const messages: ModelMessage[] = [{ role: 'user', content: [{ type: 'text', text: 'Look' }, image] }]
  await using model = await startScriptedModel(({ attempt }) =>
    attempt === 0
      ? { status: 429, error: { message: 'Rate limit reached for gpt-4-vision with images and response_format' } }
      : { text: 'done' },
  )
  const { answer } = await ask(chatWith(model, { num_retries: 1 }), { ...QUESTION, messages })
  expect(answer?.text).toBe('done')
  expect(model.requests.map(({ text }) => text.includes(image.data))).toEqual([true, true])
})
