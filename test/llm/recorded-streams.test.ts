/** Answers in the forms that vendors and gateways were seen to send, each read whole and cut anywhere. */
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import {
  brotliCompressSync,
  constants,
  createBrotliCompress,
  createZstdCompress,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from 'node:zlib'
import { describe, expect, test } from 'vitest'
import type { LlmAnswer } from '../../src/llm/llm.ts'
import { createPooledFetch } from '../../src/llm/connection/pooled-fetch.ts'
import { inOrder } from '../../src/llm/scripted/script.ts'
import { startScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import { ask, askScript, chatWith, delta, event, shownText, stop } from './asking.ts'
import { cutEverywhere } from './cutting.ts'
import { effort } from '../support/patience.ts'

type Recording = { readonly bytes: Buffer; readonly headers?: Record<string, string> }

const recording = (...pieces: string[]): Recording => ({ bytes: Buffer.from(pieces.join('')) })
const DONE = 'data: [DONE]\n\n'
const TEXT = 'Two trees 🌳, says Zoë.'
const CALL = { id: 'a', function: { name: 'Bash', arguments: '{"command":"ls 🌳"}' } }
const CALLED = [{ id: 'a', name: 'Bash', arguments: '{"command":"ls 🌳"}' }]
const pieces = [delta({ role: 'assistant', content: '' }), delta({ content: TEXT.slice(0, 11) })]
const plain = [...pieces, delta({ content: TEXT.slice(11) }), stop].map(event)
const TOKENS = { prompt_tokens: 5, completion_tokens: 7 }

/** Perplexity: the answer so far beside each piece, an empty piece at the end, and no `[DONE]`. */
const soFar = (piece: string, said: string, finish_reason: string | null = null) =>
  event({
    object: 'chat.completion.chunk',
    choices: [
      {
        index: 0,
        finish_reason,
        message: { role: 'assistant', content: said },
        delta: { role: 'assistant', content: piece },
      },
    ],
  })

const ANSWERS: Record<string, Recording & { readonly answer: Partial<LlmAnswer> }> = {
  'a message so far beside each delta': {
    ...recording(soFar(TEXT.slice(0, 9), TEXT.slice(0, 9)), soFar(TEXT.slice(9), TEXT), soFar('', TEXT, 'stop')),
    answer: { text: TEXT },
  },
  'a message beside an empty delta': {
    ...recording(
      event({
        choices: [{ index: 0, delta: {}, message: { content: TEXT, tool_calls: [CALL] }, finish_reason: 'tool_calls' }],
        usage: TOKENS,
      }),
      DONE,
    ),
    answer: { text: TEXT, toolCalls: CALLED },
  },
  'the whole message once more at the end': {
    ...recording(
      ...plain.slice(0, -1),
      event(delta({ tool_calls: [{ index: 0, ...CALL }] })),
      event({ choices: [{ index: 0, message: { content: TEXT, tool_calls: [CALL] }, finish_reason: 'tool_calls' }] }),
      DONE,
    ),
    answer: { text: TEXT, toolCalls: CALLED },
  },
  'events without data for a heartbeat': {
    ...recording(
      'data:\n\n',
      plain[0]!,
      'data: \r\n\r\n',
      plain[1]!,
      'event: ping\ndata:\n\n',
      ...plain.slice(2),
      DONE,
    ),
    answer: { text: TEXT },
  },
  'usage in x_groq alone': {
    ...recording(...plain.slice(0, -1), event({ ...stop, x_groq: { id: 'req_1', usage: TOKENS } }), DONE),
    answer: { text: TEXT, usage: { input_tokens: 5, output_tokens: 7, cached_tokens: 0, reasoning_tokens: 0 } },
  },
  'the end of a content filter': {
    ...recording(
      event({ choices: [], prompt_filter_results: [{ prompt_index: 0 }] }),
      ...plain.slice(0, -1),
      event(delta({}, 'content_filter')),
      DONE,
    ),
    answer: { text: TEXT, stopReason: 'content_filter' },
  },
  'halves of characters': {
    ...recording(
      event(delta({ content: 'one \ud83d' })),
      event(delta({ content: ' two \udf33', reasoning_content: '\udf33' })),
      event(delta({ content: 'three \ud83d' }, 'stop')),
      DONE,
    ),
    answer: { text: 'one \ufffd two \ufffdthree \ufffd', reasoning: '\ufffd' },
  },
  'one document behind comments': {
    ...recording(
      ': OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n',
      JSON.stringify({ choices: [{ message: { content: TEXT }, finish_reason: 'stop' }], usage: TOKENS }, undefined, 1),
    ),
    answer: { text: TEXT },
  },
  'gzip, which nobody asked for': {
    bytes: gzipSync(Buffer.from([...plain, DONE].join(''))),
    headers: { 'content-encoding': 'gzip' },
    answer: { text: TEXT },
  },
}

const BUSY = { error: { message: 'The engine has burst.', code: 503 } }

const FAILURES: Record<string, Recording> = {
  'an event `error` of plain text': recording(...plain.slice(0, 2), 'event: error\ndata: The engine has burst.\n\n'),
  'a list around the error': recording(...plain.slice(0, 2), `data: ${JSON.stringify([BUSY])}\n\n`),
  'Groq’s own field': recording(
    ...plain.slice(0, 2),
    event({ choices: [], x_groq: { error: 'The engine has burst.' } }),
  ),
  'OpenRouter’s choice': recording(
    ...plain.slice(0, 2),
    event({ choices: [{ index: 0, delta: { content: '' }, finish_reason: 'error', ...BUSY }] }),
  ),
  'Cloudflare’s list': recording(...plain.slice(0, 2), event({ success: false, errors: [BUSY.error] })),
  'a message': recording(...plain.slice(0, 2), event({ message: 'The engine has burst.' })),
  'a message and nothing else': recording(JSON.stringify({ message: 'The engine has burst.' })),
  'a detail': recording(...plain.slice(0, 2), event({ detail: 'The engine has burst.' })),
  'a bare document after events': recording(...plain.slice(0, 2), JSON.stringify(BUSY, undefined, 2)),
  'a bare document, a list': recording(JSON.stringify([BUSY], undefined, 2)),
  'a bare document, a detail': recording('{"detail":[{"msg":"The engine has burst."}]}'),
}

const fetch = createPooledFetch()

describe.each(Object.entries(ANSWERS))('an answer with %s', (_, { bytes, headers, answer: expected }) => {
  test('is read as it was meant', async () => {
    const { answer, deltas } = await askScript([{ raw: [bytes], ...(headers && { headers }) }], {}, { fetch })
    expect(answer).toMatchObject({ toolCalls: [], stopReason: expect.stringMatching(/stop|tool_calls/), ...expected })
    expect(shownText(deltas)).toBe(expected.text)
  })

  test('that is truncated anywhere is the complete answer, or a failure that keeps the text so far', async () => {
    const step = Math.ceil(bytes.length / effort(40, bytes.length))
    await cutEverywhere(bytes, { how: 'close', step, ...(headers && { headers }) }, ({ answer, error, deltas }) => {
      const shown = shownText(deltas)
      expect(expected.text!.startsWith(shown), shown).toBe(true)
      if (answer) return expect(answer).toMatchObject({ text: expected.text, toolCalls: expected.toolCalls ?? [] })
      expect(error?.partial?.text ?? '').toBe(shown.trim() && shown)
      return expect(error?.partial?.toolCalls ?? []).toEqual([])
    })
  })
})

test.each([
  ['gzip', gzipSync],
  ['x-gzip', gzipSync],
  ['deflate', deflateSync],
  ['br', brotliCompressSync],
  ['zstd', zstdCompressSync],
])('%s is decoded in answers and in errors, although it was not requested', async (encoding, encode) => {
  const headers = { 'content-encoding': encoding }
  const script = inOrder([
    { raw: [encode(Buffer.from([...plain, DONE].join('')))], headers },
    { status: 400, raw: [encode(Buffer.from('{"detail":"No such field."}'))], headers },
    { raw: ['this is no such thing'], headers },
  ])
  await using model = await startScriptedModel(script)
  const llm = chatWith(model, {}, { fetch })
  expect((await ask(llm)).answer?.text).toBe(TEXT)
  expect((await ask(llm)).error?.message).toContain('No such field.')
  expect((await ask(llm)).error).toMatchObject({ type: 'network', retryable: true })
})

test.each([
  ['zstd', (log: number) => createZstdCompress({ params: { [constants.ZSTD_c_windowLog]: log } })],
  [
    'br',
    (log: number) =>
      createBrotliCompress({
        params: { [constants.BROTLI_PARAM_LGWIN]: log, [constants.BROTLI_PARAM_LARGE_WINDOW]: log > 24 ? 1 : 0 },
      }),
  ],
] as const)('%s is decoded with the windows of the web, and not with larger ones', async (encoding, encoderFor) => {
  const answerWith = async (windowLog: number) => {
    const encoded = await buffer(Readable.from([...plain, DONE]).pipe(encoderFor(windowLog)))
    return await askScript([{ raw: [encoded], headers: { 'content-encoding': encoding } }], {}, { fetch })
  }
  expect((await answerWith(23)).answer?.text).toBe(TEXT)
  expect((await answerWith(27)).error?.type).toBe('network')
})

describe.each(Object.entries(FAILURES))('a failure reported by %s', (_, { bytes }) => {
  test('keeps its message', async () => {
    const { error, deltas } = await askScript([{ raw: [bytes] }])
    expect(error).toMatchObject({ type: 'network', retryable: true })
    expect(error?.message).toContain('The engine has burst.')
    expect(error?.partial?.text ?? '').toBe(shownText(deltas))
  })

  test('is never an answer, wherever it is truncated', async () => {
    const step = Math.ceil(bytes.length / effort(20, bytes.length))
    await cutEverywhere(bytes, { how: 'close', step }, ({ error, deltas }) => {
      expect(error?.partial?.text ?? '').toBe(shownText(deltas))
      expect(error?.type).toMatch(/network|config/)
    })
  })
})
