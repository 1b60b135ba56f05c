/** The tokens of a request, by what the model reported and what was added or removed since. */
import { describe, expect, test } from 'vitest'
import { ContextSize, tokensOfMessage } from '../../src/agent/history/context-size.ts'
import { NO_USAGE } from '../../src/contract/values/message.ts'
import type { ModelMessage } from '../../src/llm/llm.ts'

/** So many tokens, with those of the message itself. */
const said = (tokens: number): ModelMessage => {
  const message: ModelMessage = { role: 'user', content: [{ type: 'text', text: 'x'.repeat(4 * (tokens - 4)) }] }
  expect(tokensOfMessage(message)).toBe(tokens)
  return message
}
const answer: ModelMessage = { role: 'assistant', text: 'xxxx'.repeat(6), toolCalls: [] }
const reported = (input_tokens: number, more: Partial<typeof NO_USAGE> = {}) => ({ ...NO_USAGE, input_tokens, ...more })
/** Those of the prompt and the tools. */
const fixed = () => 1000

test('without a report all is estimated, with the prompt and the tools', () => {
  const size = new ContextSize()
  expect(size.of([said(50)], fixed)).toBe(1050)
  expect(size.of([said(50), said(20)], fixed)).toBe(1070)
})

test('a report counts, with the answer but not its reasoning, and with what came meanwhile', () => {
  const size = new ContextSize()
  const unread = said(30)
  size.measured(reported(500, { output_tokens: 40, reasoning_tokens: 30 }), [said(100), unread, answer], [unread])
  expect(size.of([said(100), unread, answer], fixed)).toBe(500 + 10 + 30)
  expect(size.of([said(100), unread, answer, said(25)], fixed)).toBe(540 + 25)
})

describe('a report is believed', () => {
  const isBelieved = (size: ContextSize, tokens: number, messages: ModelMessage[]) => {
    size.measured(reported(tokens), messages, [])
    return size.of(messages, fixed) === tokens
  }

  test.each([
    [200, false],
    [201, true],
    [1000, true],
    [5000 + 199_999, true],
    [5000 + 200_000, false],
    [0, false],
  ])('of %i tokens for about a thousand: %j', (tokens, expected) => {
    expect(isBelieved(new ContextSize(), tokens, [said(1000), answer])).toBe(expected)
  })

  test('by what is sent now: what was removed does not count', () => {
    const size = new ContextSize()
    const [large, small] = [said(10_000), said(50)]
    expect(isBelieved(size, 10_000, [large, small, answer])).toBe(true)
    size.removed(large, 0)
    expect(isBelieved(size, 77, [small, answer, small, answer])).toBe(true)
  })
})

test('a message that is removed is counted no more, if it was counted', () => {
  const size = new ContextSize()
  const messages = [said(50), said(20)]
  expect(size.of(messages, fixed)).toBe(1070)
  size.removed(messages[1]!, 1)
  expect(size.of([messages[0]!], fixed)).toBe(1050)
  size.removed(said(20), 1)
  expect(size.of([messages[0]!, said(30)], fixed)).toBe(1080)
})

test('after a compaction the estimate is corrected by what was reported, within bounds', () => {
  const scaledAfter = (tokens: number): number => {
    const size = new ContextSize()
    const messages = [said(1000), answer]
    size.measured(reported(tokens), messages, [])
    size.forget(messages, fixed)
    expect(size.of([], fixed)).toBe(size.scaled(1000))
    return size.scaled(1000)
  }
  expect(scaledAfter(4020)).toBe(2000)
  expect(scaledAfter(100_000)).toBe(4000)
  expect(scaledAfter(300)).toBe(500)
  const size = new ContextSize()
  size.forget([said(1000)], fixed)
  expect(size.scaled(1000)).toBe(1000)
})
