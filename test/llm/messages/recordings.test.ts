/** Streams of Anthropic's Messages API, as the vendor and gateways send them, each read whole and cut anywhere. */
import { describe, expect, test } from 'vitest'
import type { LlmAnswer } from '../../../src/llm/llm.ts'
import { askScript, shownText } from '../asking.ts'
import { readRecordings, testRecording } from '../recordings.ts'

const RECORDINGS = readRecordings('anthropic')
const config = { provider: 'anthropic' } as const
const SIGNATURE = 'EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds5fk+Pq8=='
const signed = (text: string, data = SIGNATURE, calls_before?: number) => ({
  type: 'reasoning',
  text,
  ...(calls_before !== undefined && { calls_before }),
  provider_data: { provider: 'anthropic', kind: 'signature', data },
})
const text = (words: string) => ({ type: 'text', text: words })
const FIRST = 'toolu_01T1x1fJ34qAmk2tNTrN7Up6'
const SECOND = 'toolu_01Hk7aW2nZbq9VxQ5cRr8sTd'

const ANSWERS: Record<string, LlmAnswer> = {
  'thinking-and-two-calls.sse': {
    text: 'I’ll look at both 🌳.',
    reasoning: 'Two places 🌳 to look at.\n',
    parts: [signed('Two places 🌳 to look at.\n'), text('I’ll look at both 🌳.')] as never,
    toolCalls: [
      { id: FIRST, name: 'Bash', arguments: '{"command": "ls 🌳"}' },
      { id: SECOND, name: 'ReadFile', arguments: '{"path":"a.txt"}' },
    ],
    usage: {
      input_tokens: 2400,
      output_tokens: 97,
      cached_tokens: 2048,
      cache_write_tokens: 340,
      reasoning_tokens: 21,
    },
    costUsd: undefined,
    stopReason: 'tool_use',
    model: 'claude-sonnet-5-5',
    provider: 'anthropic',
  },
  'interleaved-thinking.sse': {
    text: '\n\n',
    reasoning: 'And the other one.',
    parts: [
      {
        type: 'reasoning',
        text: '',
        provider_data: {
          provider: 'anthropic',
          kind: 'encrypted',
          data: 'EmwKAhgBEgy3va3pzix/LafPsn4aDFIT2Xlxh0L5L8rLVyIwxtE3rAFBa8cr3qpP',
        },
      },
      signed('', 'c2lnbmF0dXJlLW9mLW9taXR0ZWQ='),
      signed('And the other one.', SIGNATURE, 1),
    ] as never,
    toolCalls: [
      { id: FIRST, name: 'Bash', arguments: '{"command":"pwd"}' },
      { id: SECOND, name: 'Bash', arguments: '{"command":"ls"}' },
    ],
    usage: { input_tokens: 900, output_tokens: 40, cached_tokens: 0, reasoning_tokens: 0 },
    costUsd: undefined,
    stopReason: 'tool_use',
    model: 'claude-opus-4-8',
    provider: 'anthropic',
  },
  'server-tool-and-citations.sse': {
    text: "I'll check. There are two.",
    reasoning: '',
    toolCalls: [],
    usage: { input_tokens: 2679, output_tokens: 60, cached_tokens: 0, reasoning_tokens: 0 },
    costUsd: undefined,
    stopReason: 'end_turn',
    model: 'claude-opus-5',
    provider: 'anthropic',
  },
  'gateway-without-event-names.sse': {
    text: 'Two trees.',
    reasoning: 'The user asks.',
    parts: [signed('The user asks.', '3f1c'), text('Two trees.')] as never,
    toolCalls: [{ id: 'call_00_x', name: 'Bash', arguments: '{"command":"ls"}' }],
    usage: { input_tokens: 200, output_tokens: 12, cached_tokens: 0, reasoning_tokens: 0 },
    costUsd: undefined,
    stopReason: 'tool_use',
    model: 'deepseek-chat',
    provider: 'anthropic',
  },
  'whole-message.json': {
    text: 'Two trees.',
    reasoning: 'Hm.',
    parts: [signed('Hm.'), text('Two trees.')] as never,
    toolCalls: [{ id: FIRST, name: 'Bash', arguments: '{"command":"ls"}' }],
    usage: { input_tokens: 5, output_tokens: 7, cached_tokens: 0, reasoning_tokens: 0 },
    costUsd: undefined,
    stopReason: 'tool_use',
    model: 'claude-haiku-5-5',
    provider: 'anthropic',
  },
}

test('each recording is an answer or a failure', () => {
  const answers = [...RECORDINGS.keys()].filter((name) => !name.includes('.error.'))
  expect(answers.sort()).toEqual(Object.keys(ANSWERS).sort())
})

describe.each(Object.entries(ANSWERS))('%s', (name, expected) => testRecording(RECORDINGS.get(name)!, expected, config))

test.each([
  ['overloaded.error.sse', 'rate_limit', 'Overloaded'],
  ['api-error.error.sse', 'network', 'Internal server error'],
])('%s is a failure that keeps the text so far and may pass', async (name, type, message) => {
  const { error, deltas } = await askScript([{ raw: [RECORDINGS.get(name)!] }], config)
  expect(error).toMatchObject({ type, retryable: true, partial: { text: 'Two trees' } })
  expect(error?.message).toContain(message)
  expect(shownText(deltas)).toBe('Two trees')
})
