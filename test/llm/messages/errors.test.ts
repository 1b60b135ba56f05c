/** Failures of Anthropic's Messages API, and answers that were not ended by the model. */
import { expect, test } from 'vitest'
import { cutReasonOf } from '../../../src/contract/finish-reason.ts'
import { askScript } from '../asking.ts'

const config = { provider: 'anthropic', api_key: 'sk-ant-secret-key' } as const

test.each([
  [401, 'authentication_error', 'invalid x-api-key', 'auth', false],
  [403, 'permission_error', 'Your API key does not have permission to use the specified resource.', 'auth', false],
  [402, 'billing_error', 'Your credit balance is too low to access the Anthropic API.', 'quota', false],
  [400, 'invalid_request_error', 'Your credit balance is too low to access the Anthropic API.', 'quota', false],
  [404, 'not_found_error', 'model: claude-x', 'config', false],
  [413, 'request_too_large', 'Request exceeds the maximum allowed number of bytes.', 'context_window', false],
  [400, 'invalid_request_error', 'prompt is too long: 210000 tokens > 200000 maximum', 'context_window', false],
  [
    400,
    'invalid_request_error',
    'input length and `max_tokens` exceed context limit: 19 + 2 > 20',
    'context_window',
    false,
  ],
  [429, 'rate_limit_error', 'This request would exceed your rate limit.', 'rate_limit', true],
  [500, 'api_error', 'Internal server error', 'network', true],
  [504, 'timeout_error', 'The request timed out.', 'network', true],
  [529, 'overloaded_error', 'Overloaded', 'rate_limit', true],
])('HTTP %i with %s (%s) is %s', async (status, type, message, expected, retryable) => {
  const { error } = await askScript([{ status, error: { type, message } }], config)
  expect(error).toMatchObject({ type: expected, retryable })
  expect(error?.message).toContain(message)
  if (status === 404) expect(error?.message).toContain('llm_config.model')
})

test('a request that was overloaded is repeated, and waits as long as the endpoint asks', async () => {
  const busy = {
    status: 429,
    headers: { 'retry-after': '0.005' },
    error: { type: 'rate_limit_error', message: 'Wait' },
  }
  const { answer, deltas } = await askScript([busy, { text: 'done' }], { ...config, num_retries: 1 })
  expect(answer?.text).toBe('done')
  expect(deltas[0]).toMatchObject({ kind: 'retry', type: 'rate_limit', waitMs: 5 })
})

test('the key is not repeated in a message of the endpoint', async () => {
  const { error } = await askScript([{ status: 400, error: { message: 'bad key sk-ant-secret-key' } }], config)
  expect(error?.message).not.toContain('secret')
})

test('a host that has no such API is named', async () => {
  const { error } = await askScript([{ raw: ['<html><title>Welcome</title></html>'] }], config)
  expect(error?.message).toContain('is not a Messages endpoint')
})

test.each([
  ['end_turn', undefined],
  ['tool_use', undefined],
  ['stop_sequence', undefined],
  ['pause_turn', undefined],
  ['max_tokens', 'output_limit'],
  ['refusal', 'content_filter'],
  ['model_context_window_exceeded', 'context_window'],
])('stop reason %s', async (finish_reason, cut) => {
  const { answer } = await askScript([{ text: 'Hm', finish_reason }], config)
  expect(answer?.stopReason).toBe(finish_reason)
  expect(cutReasonOf(answer!.stopReason)).toBe(cut)
})

test('a call whose arguments were cut off at the output limit never runs', async () => {
  const calls = [
    { name: 'Bash', arguments: '{"command":"ls"}' },
    { name: 'Bash', arguments: '{"command":"rm' },
  ]
  const { answer } = await askScript([{ calls, finish_reason: 'max_tokens' }], config)
  expect(answer?.toolCalls.map((call) => call.arguments)).toEqual(['{"command":"ls"}'])
})
