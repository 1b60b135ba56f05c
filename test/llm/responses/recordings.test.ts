/** Streams of OpenAI's Responses API, as the vendor and gateways send them, each read whole and cut anywhere. */
import { describe, expect, test } from 'vitest'
import type { LlmAnswer } from '../../../src/llm/llm.ts'
import { askScript, shownText } from '../asking.ts'
import { readRecordings, testRecording } from '../recordings.ts'

const config = { provider: 'openai_responses' } as const
const RECORDINGS = readRecordings('responses')
const ENCRYPTED = 'gAAAAABo8k1mX0h2yq4Wc7B3vLrT9QzJ5dN8pKfE6sUaRiYg=='
const proof = (id: string, data = ENCRYPTED) => ({ provider: 'openai_responses', kind: 'encrypted', data, id }) as const

const ANSWERS: Record<string, LlmAnswer> = {
  'reasoning-and-two-calls.sse': {
    text: 'I’ll look at both 🌳.',
    reasoning: '**Two places** 🌳\n\nto look at.\n\n**Order**\n\nFirst ls.',
    parts: [
      { type: 'reasoning', text: '**Two places** 🌳\n\nto look at.' },
      {
        type: 'reasoning',
        text: '**Order**\n\nFirst ls.',
        provider_data: proof('rs_67ccf18f64008190a39b619f4c8455ef'),
      },
      { type: 'text', text: 'I’ll look at both 🌳.', phase: 'commentary' },
    ],
    toolCalls: [
      { id: 'call_0mHlVwMzA8uYsGzLk1lHYtq0', name: 'Bash', arguments: '{"command": "ls 🌳"}' },
      { id: 'call_1nTqOvNcB9vZtHaMl2mIZur1', name: 'ReadFile', arguments: '{"path":"a.txt"}' },
    ],
    usage: {
      input_tokens: 2400,
      output_tokens: 97,
      cached_tokens: 2048,
      cache_write_tokens: 340,
      reasoning_tokens: 21,
    },
    costUsd: undefined,
    stopReason: 'completed',
    model: 'gpt-6-2026-08-07',
    provider: 'openai_responses',
  },
  'interleaved-reasoning.sse': {
    text: '',
    reasoning: 'And the other one.',
    parts: [
      { type: 'reasoning', text: '', provider_data: proof('rs_1') },
      {
        type: 'reasoning',
        text: 'And the other one.',
        calls_before: 1,
        provider_data: proof('rs_2', 'gAAAAABsecond'),
      },
    ],
    toolCalls: [
      { id: 'call_a', name: 'Bash', arguments: '{"command":"pwd"}' },
      { id: 'call_b', name: 'Bash', arguments: '{"command":"ls"}' },
    ],
    usage: { input_tokens: 900, output_tokens: 40, cached_tokens: 0, reasoning_tokens: 0 },
    costUsd: undefined,
    stopReason: 'completed',
    model: 'gpt-5.2-codex',
    provider: 'openai_responses',
  },
  'gateway-with-plain-reasoning.sse': {
    text: 'Two trees.',
    reasoning: 'The user asks.',
    toolCalls: [],
    usage: { input_tokens: 200, output_tokens: 12, cached_tokens: 0, reasoning_tokens: 0 },
    costUsd: undefined,
    stopReason: 'completed',
    model: 'openai/gpt-oss-120b',
    provider: 'openai_responses',
  },
  'only-the-end.sse': {
    text: 'Two trees.',
    reasoning: '',
    toolCalls: [{ id: 'call_a', name: 'Bash', arguments: '{"command":"ls"}' }],
    usage: { input_tokens: 5, output_tokens: 7, cached_tokens: 0, reasoning_tokens: 0 },
    costUsd: undefined,
    stopReason: 'completed',
    model: 'gpt-4.1',
    provider: 'openai_responses',
  },
  'whole-response.json': {
    text: 'I cannot do that.',
    reasoning: '',
    toolCalls: [],
    usage: { input_tokens: 5, output_tokens: 7, cached_tokens: 0, reasoning_tokens: 0 },
    costUsd: undefined,
    stopReason: 'completed',
    model: 'gpt-4.1',
    provider: 'openai_responses',
  },
}

test('each recording is an answer or a failure', () => {
  const answers = [...RECORDINGS.keys()].filter((name) => !name.includes('.error.'))
  expect(answers.sort()).toEqual(Object.keys(ANSWERS).sort())
})

describe.each(Object.entries(ANSWERS))('%s', (name, expected) => testRecording(RECORDINGS.get(name)!, expected, config))

test.each([
  ['rate-limit.error.sse', 'rate_limit', true, 'Rate limit reached'],
  ['server-error.error.sse', 'network', true, 'had an error'],
  ['context-window.error.sse', 'context_window', false, 'exceeds the context window'],
])('%s is a failure that keeps the text so far', async (name, type, retryable, message) => {
  const { error, deltas } = await askScript([{ raw: [RECORDINGS.get(name)!] }], config)
  expect(error).toMatchObject({ type, retryable, partial: { text: 'Two trees' } })
  expect(error?.message).toContain(message)
  expect(shownText(deltas)).toBe('Two trees')
})
