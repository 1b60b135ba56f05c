/** What the answers of a model that is asked for a summary lead to. */
import { describe, expect, test } from 'vitest'
import type { SummaryTask } from '../../../src/agent/compaction/summarise.ts'
import { summarise } from '../../../src/agent/compaction/summarise.ts'
import { LlmError } from '../../../src/llm/errors/llm-error.ts'
import type { LlmAnswer, LlmDelta, LlmRequest, LlmRetry } from '../../../src/llm/llm.ts'

const usage = { input_tokens: 10, output_tokens: 2, cached_tokens: 1, reasoning_tokens: 1 }
const twice = { input_tokens: 20, output_tokens: 4, cached_tokens: 2, reasoning_tokens: 2 }
const answer = (text: string, fields: Partial<LlmAnswer> = {}): LlmAnswer => ({
  text,
  reasoning: '',
  toolCalls: [],
  usage,
  costUsd: 0.5,
  stopReason: 'stop',
  model: 'answering',
  ...fields,
})
const retry: LlmRetry = { kind: 'retry', type: 'rate_limit', message: 'busy', retry: 1, maxRetries: 3, waitMs: 0 }
const asks = (words: string): LlmRequest => ({
  system: 'S'.repeat(40),
  tools: [],
  messages: [{ role: 'user', content: [{ type: 'text', text: words }] }],
})

/** An error, or the deltas before an answer. */
type Reply = Error | LlmAnswer | readonly [...LlmDelta[], LlmAnswer]

/** Gives these replies in turn. */
async function summaryOf(replies: readonly Reply[], fields: Partial<SummaryTask> = {}, signal?: AbortSignal) {
  const seen = { asked: [] as string[], retries: [] as LlmRetry[], left: 0 }
  const task: SummaryTask = {
    llm: {
      model: 'asked',
      async *stream(request) {
        const reply = replies[seen.asked.push(JSON.stringify(request.messages)) - 1]!
        try {
          if (reply instanceof Error) throw reply
          const deltas = 'text' in reply ? [reply] : reply
          for (const delta of deltas) {
            if (!('kind' in delta)) return delta
            yield delta
          }
          return answer('')
        } finally {
          seen.left++
        }
      },
    },
    requests: replies.map((_, at) => () => asks(`request ${at}`)),
    maxChars: 10,
    costOf: (cut) => cut.output_tokens,
    onRetry: async (each) => void seen.retries.push(each),
    ...fields,
  }
  return { seen, outcome: await summarise(task, signal ?? new AbortController().signal) }
}

describe('a summary', () => {
  test('is the first answer that has a text, and no more requests are sent', async () => {
    const { seen, outcome } = await summaryOf([answer(' short \n'), answer('other')])
    expect(outcome).toEqual({ text: 'short', model: 'answering', usage, costUsd: 0.5 })
    expect(seen.asked).toEqual([expect.stringContaining('request 0')])
  })

  test('costs what all attempts cost, by the name of the model that answered last', async () => {
    const { seen, outcome } = await summaryOf([answer('', { model: 'first' }), answer('good', { model: '' })])
    expect(outcome).toEqual({ text: 'good', model: 'first', usage: twice, costUsd: 1 })
    expect(seen.asked).toEqual([expect.stringContaining('request 0'), expect.stringContaining('request 1')])
  })

  test('may be twice as long as wished, and is cut there, between characters', async () => {
    expect((await summaryOf([answer('x'.repeat(20))])).outcome.text).toBe('x'.repeat(20))
    expect((await summaryOf([answer('x'.repeat(21))])).outcome.text).toBe(`${'x'.repeat(20)} […]`)
    expect((await summaryOf([answer(`${'x'.repeat(19)}😀`)])).outcome.text).toBe(`${'x'.repeat(19)}\uFFFD […]`)
  })

  test('that the length limit ended is used, and one that a content filter ended is not', async () => {
    expect((await summaryOf([answer('part', { stopReason: 'length' })])).outcome).toMatchObject({ text: 'part' })
    const { outcome } = await summaryOf([answer('part', { stopReason: 'content_filter' })])
    expect(outcome).toEqual({
      failure: 'a content filter ended the summary',
      model: 'answering',
      usage,
      costUsd: 0.5,
    })
  })

  test('that is missing has the reason of the last attempt', async () => {
    const call = { id: 'c', name: 'Bash', arguments: '{}' }
    const empty = answer(' ')
    const called = answer('', { toolCalls: [call] })
    const failureOf = async (...replies: Reply[]) => (await summaryOf(replies)).outcome
    expect(await failureOf(called, empty)).toMatchObject({ failure: 'the model wrote an empty summary' })
    expect(await failureOf(empty, called)).toMatchObject({
      failure: 'the model called a tool instead of writing a summary',
    })
    expect(await failureOf(empty, new LlmError('context_window', 'too long'))).toMatchObject({ failure: 'too long' })
    expect(await failureOf()).toEqual({
      failure: 'the model was not asked',
      model: 'asked',
      usage: { input_tokens: 0, output_tokens: 0, cached_tokens: 0, reasoning_tokens: 0 },
      costUsd: undefined,
    })
  })

  test.each(['context_window', 'content_filter'] as const)('is asked for in another way after %s', async (type) => {
    const { outcome } = await summaryOf([new LlmError(type, 'no'), answer('good')])
    expect(outcome).toEqual({ text: 'good', model: 'answering', usage, costUsd: 0.5 })
  })

  test('is not asked for again after another error', async () => {
    const other = new LlmError('auth', 'no')
    await expect(summaryOf([other, answer('good')])).rejects.toBe(other)
    const fault = new TypeError('no')
    await expect(summaryOf([fault, answer('good')])).rejects.toBe(fault)
  })
})

describe('an answer that does not end', () => {
  const piece = (kind: 'text' | 'reasoning', length: number): LlmDelta => ({ kind, text: 'y'.repeat(length) })

  test('is cut off after twice the length, and what was read and written is counted', async () => {
    const { seen, outcome } = await summaryOf([[piece('text', 20), piece('text', 1), answer('never')]])
    // 40 characters of the prompt, 9 of the message and what separates it; and 21 characters.
    const read = { input_tokens: 10 + 3 + 4, output_tokens: 6, cached_tokens: 0, reasoning_tokens: 0 }
    expect(outcome).toEqual({ text: `${'y'.repeat(20)} […]`, model: 'asked', usage: read, costUsd: 6 })
    expect(seen.left).toBe(1)
    expect((await summaryOf([[piece('text', 20), answer('whole')]])).outcome.text).toBe('whole')
  })

  test('may reason for 400,000 characters', async () => {
    const long = [piece('reasoning', 300_000), piece('reasoning', 100_000)]
    expect((await summaryOf([[...long, answer('whole')]])).outcome.text).toBe('whole')
    expect((await summaryOf([[...long, piece('reasoning', 1), answer('whole')]])).outcome).toMatchObject({
      failure: 'the model wrote an empty summary',
      usage: { output_tokens: 100_001 },
    })
  })

  test('counts from its beginning after a retry, which is reported', async () => {
    const before = [piece('text', 15), piece('reasoning', 300_000), retry]
    const { seen, outcome } = await summaryOf([
      [...before, piece('text', 15), piece('reasoning', 300_000), answer('whole')],
    ])
    expect(outcome.text).toBe('whole')
    expect(seen.retries).toEqual([retry])
  })

  test('is not retried once the compaction is aborted', async () => {
    const reason = new Error('aborted')
    const asked: unknown[] = []
    const onRetry = async (each: LlmRetry) => void asked.push(each)
    const aborted = AbortSignal.abort(reason)
    await expect(summaryOf([[retry, answer('whole')]], { onRetry }, aborted)).rejects.toBe(reason)
    expect(asked).toEqual([])
  })
})
