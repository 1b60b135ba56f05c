import { setImmediate as yieldToLoop } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createRedactedLlm } from '../../src/agent/model/redacted-llm.ts'
import { NO_USAGE } from '../../src/contract/values/message.ts'
import type { Llm, LlmAnswer, LlmDelta } from '../../src/llm/llm.ts'
import { LlmError } from '../../src/llm/errors/llm-error.ts'
import { createRedactor } from '../../src/security/redaction/redactor.ts'

const SECRET = 'tok"en-4711'

const answer = (more: Partial<LlmAnswer>): LlmAnswer => ({
  text: '',
  reasoning: '',
  toolCalls: [],
  usage: NO_USAGE,
  costUsd: undefined,
  stopReason: 'stop',
  model: 'm',
  ...more,
})

/** A model that streams these deltas, then returns the answer or throws the error. */
function model(deltas: LlmDelta[], end: LlmAnswer | Error): Llm {
  return {
    model: 'm',
    async *stream() {
      yield* deltas
      if (end instanceof Error) throw end
      return end
    },
  }
}

async function listen(llm: Llm) {
  const redactor = createRedactor()
  redactor.set('TOKEN', SECRET)
  const stream = createRedactedLlm(llm, redactor).stream(
    { system: '', messages: [], tools: [{ name: 'Bash', description: '', inputSchema: {} }] },
    new AbortController().signal,
  )
  const deltas: LlmDelta[] = []
  try {
    for (;;) {
      const next = await stream.next()
      if (next.done) return { deltas, answer: next.value, error: undefined }
      deltas.push(next.value)
    }
  } catch (error) {
    return { deltas, answer: undefined, error: error as LlmError }
  }
}

const joined = (deltas: LlmDelta[], kind: string, index?: number) =>
  deltas
    .flatMap((delta) =>
      delta.kind === kind && 'text' in delta && (!('index' in delta) || delta.index === index) ? [delta.text] : [],
    )
    .join('')

test('each part is a separate text: a secret split in one part is found, whatever comes between', async () => {
  const { deltas, answer: said } = await listen(
    model(
      [
        { kind: 'reasoning', text: 'I know tok"' },
        { kind: 'text', text: 'It is tok"en' },
        { kind: 'reasoning', text: 'en-4711 now' },
        { kind: 'text', text: '-47' },
        { kind: 'tool_input', index: 0, id: 'a', name: 'Bash', text: '{"a":"tok\\"e' },
        { kind: 'tool_input', index: 1, id: 'b', name: 'Bash', text: '{"b":"tok\\u0022en-' },
        { kind: 'text', text: '11' },
        { kind: 'tool_input', index: 0, id: 'a', name: 'Bash', text: 'n-4711"}' },
        { kind: 'tool_input', index: 1, id: 'b', name: 'Bash', text: '4711 to"}' },
        { kind: 'text', text: '. tok' },
      ],
      answer({ text: `It is ${SECRET}. tok`, reasoning: `I know ${SECRET} now` }),
    ),
  )
  expect(joined(deltas, 'text')).toBe('It is <secret:TOKEN>. tok')
  expect(joined(deltas, 'reasoning')).toBe('I know <secret:TOKEN> now')
  expect(joined(deltas, 'tool_input', 0)).toBe('{"a":"<secret:TOKEN>"}')
  expect(joined(deltas, 'tool_input', 1)).toBe('{"b":"<secret:TOKEN> to"}')
  expect(said).toMatchObject({ text: joined(deltas, 'text'), reasoning: joined(deltas, 'reasoning') })
})

test('calls do not contain it in names, ids or arguments, however those are escaped', async () => {
  const deep = JSON.stringify({ file: JSON.stringify({ a: JSON.stringify({ token: SECRET }) }) })
  const unicode = `{"command":"echo ${Array.from(SECRET, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')}"}`
  const { answer: said } = await listen(
    model(
      [],
      answer({
        model: `m ${SECRET}`,
        stopReason: SECRET,
        toolCalls: [
          { id: `a-${SECRET}`, name: SECRET, arguments: deep },
          { id: 'b', name: 'Bash', arguments: unicode },
          { id: 'c', name: 'Bash', arguments: `no JSON tok\\"en-4711` },
          { id: 'd', name: 'Bash', arguments: '{ "as": "it was" }' },
        ],
      }),
    ),
  )
  expect(said!.toolCalls.map((call) => call.name)).toEqual(['<secret:TOKEN>', 'Bash', 'Bash', 'Bash'])
  expect(said!.toolCalls.map((call) => call.id)).toEqual([expect.stringMatching(/^call_[0-9a-f-]{36}$/), 'b', 'c', 'd'])
  expect(said!.toolCalls.slice(1).map((call) => call.arguments)).toEqual([
    '{"command":"echo <secret:TOKEN>"}',
    'no JSON <secret:TOKEN>',
    '{ "as": "it was" }',
  ])
  expect(said!.toolCalls[0]!.arguments).toContain('<secret:TOKEN>')
  expect(JSON.stringify(said)).not.toMatch(/en-4711/)
})

test('deltas of tool input have the id that the call has in the answer, and neither its id nor its name is a secret', async () => {
  const piece = { kind: 'tool_input', index: 0, id: `a-${SECRET}`, text: '{}' } as const
  const { deltas, answer: said } = await listen(
    model(
      [
        { ...piece, name: 'tok"en-47' },
        { ...piece, name: SECRET },
        { ...piece, index: 1, id: 'b', name: 'Bash' },
      ],
      answer({ toolCalls: [{ id: `a-${SECRET}`, name: SECRET, arguments: '{}' }] }),
    ),
  )
  const { id } = said!.toolCalls[0]!
  expect(deltas).toMatchObject([
    { id, name: '' },
    { id: 'b', name: 'Bash' },
  ])
  expect(id).toMatch(/^call_/)
})

test('a retry begins another text, and says without the secret why', async () => {
  const retry = { kind: 'retry', type: 'network', retry: 1, maxRetries: 4, waitMs: 1000 } as const
  const { deltas } = await listen(
    model(
      [
        { kind: 'text', text: 'tok"en' },
        { ...retry, message: `It said: ${SECRET}` },
        { kind: 'text', text: '-4711' },
      ],
      answer({ text: '-4711' }),
    ),
  )
  expect(deltas).toEqual([
    { ...retry, message: 'It said: <secret:TOKEN>' },
    { kind: 'text', text: '-4711' },
  ])
})

test('an error and the text before it do not contain it', async () => {
  const failure = new LlmError('auth', `no: ${SECRET}`, {
    retryable: true,
    lacksTools: true,
    partial: answer({ text: `so ${SECRET}` }),
  })
  const { error } = await listen(model([], failure))
  expect(error).toMatchObject({
    type: 'auth',
    message: 'no: <secret:TOKEN>',
    retryable: true,
    lacksTools: true,
    partial: { text: 'so <secret:TOKEN>' },
  })
})

test('the end of truncated text is left out if it may be part of a secret', async () => {
  const cutOff = async (text: string) =>
    (await listen(model([], new LlmError('network', 'cut', { partial: answer({ text }) })))).error?.partial
  const before = 'It was said before. '
  const shown = (await cutOff(`${before}tok"en-471`))?.text.length ?? 0
  expect(before.slice(0, shown)).toBe((await cutOff(`${before}tok"en-471`))?.text)
  expect((await cutOff(`${before}something!`))?.text.length).toBe(shown)
  expect(await cutOff(`${before}A line.\n`)).toMatchObject({
    text: `${before}A line.\n`,
    model: 'm',
    stopReason: 'stop',
  })
})

test('a key that the provider has masked in part is not in the message of an error', async () => {
  const { error } = await listen(model([], new LlmError('auth', 'Incorrect API key provided: sk-ab*****yz.')))
  expect(error?.message).toBe('Incorrect API key provided: <secret:masked>.')
})

test('a server key does not change when a delta is shown, and is not in one, nor in the answer', async () => {
  const redactor = createRedactor()
  redactor.setServerKey('LLM_API_KEY', 'sk-0123456789')
  const texts = ['It is sk-01', '234', '56789 or sk-0123456789.']
  const llm = createRedactedLlm(
    model(
      texts.map((text) => ({ kind: 'text', text })),
      answer({ text: texts.join('') }),
    ),
    redactor,
  )
  const stream = llm.stream(
    { system: '', messages: [], tools: [{ name: 'Bash', description: '', inputSchema: {} }] },
    new AbortController().signal,
  )
  const shown: string[] = []
  let next = await stream.next()
  for (; !next.done; next = await stream.next()) shown.push('text' in next.value ? next.value.text : '')
  expect(shown).toEqual(['It is sk-01', '234', '56789 or <secret:LLM_API_KEY>.'])
  expect(next.value.text).toBe('It is <secret:LLM_API_KEY> or <secret:LLM_API_KEY>.')
})

test('a reader that leaves early closes the stream', async () => {
  let isClosed = false
  const llm: Llm = {
    model: 'm',
    async *stream() {
      try {
        for (;;) yield { kind: 'text', text: 'more ' }
      } finally {
        isClosed = true
      }
    },
  }
  for await (const _ of createRedactedLlm(llm, createRedactor()).stream(
    { system: '', messages: [], tools: [{ name: 'Bash', description: '', inputSchema: {} }] },
    new AbortController().signal,
  ))
    break
  expect(isClosed).toBe(true)
})

test.each([
  ['a short delta as it is', 100, 1],
  ['a delta of 16 Ki as it is', 16 * 1024, 1],
  ['a longer one in slices', 20_000, 2],
  ['a very long one in more of them', 40_000, 3],
])('a reader gets %s, and all of its text', async (_what, length, count) => {
  const words = Array.from({ length }, (_, at) => (at % 10 === 9 ? '\n' : String(at % 7))).join('')
  const { deltas } = await listen(model([{ kind: 'text', text: words }], answer({ text: words })))
  expect(joined(deltas, 'text')).toBe(words)
  const lengths = deltas.map((delta) => ('text' in delta ? delta.text.length : 0))
  expect(lengths.filter((each) => each > SECRET.length)).toHaveLength(count)
  expect(Math.max(...lengths)).toBeLessThanOrEqual(16 * 1024 + SECRET.length)
})

test('a secret across the slices of a long delta is found', async () => {
  const before = 'word '.repeat(3276)
  const text = `${before}${SECRET} and ${'more '.repeat(5000)}`
  expect(before.length).toBeLessThan(16 * 1024)
  expect(before.length + SECRET.length).toBeGreaterThan(16 * 1024)
  const { deltas } = await listen(model([{ kind: 'text', text }], answer({ text })))
  expect(joined(deltas, 'text')).toBe(text.replace(SECRET, '<secret:TOKEN>'))
})

test('arguments of many fields are redacted in slices: other work has its turns', async () => {
  const fields = Object.fromEntries(Array.from({ length: 40_000 }, (_, at) => [`key ${at}`, `${at} ${'v'.repeat(50)}`]))
  const text = JSON.stringify({ ...fields, last: SECRET })
  const loop = { turns: 0, isOver: false }
  const counting = (async () => {
    for (; !loop.isOver; loop.turns++) await yieldToLoop()
  })()
  const call = { id: 'a', name: 'Think', arguments: text }
  const { answer: said } = await listen(model([], answer({ toolCalls: [call] })))
  loop.isOver = true
  await counting
  expect(loop.turns).toBeGreaterThan(1)
  expect(said?.toolCalls[0]?.arguments).toBe(JSON.stringify({ ...fields, last: '<secret:TOKEN>' }))
})

test('reasoning that the provider wants back is kept only if nothing of the answer had to be redacted', async () => {
  const proof = (data: string) => ({ provider: 'anthropic', kind: 'signature', data }) as const
  const thought = (text: string, data = 'signature') =>
    ({ type: 'reasoning', text, provider_data: proof(data) }) as const
  const text = (words: string) => ({ type: 'text', text: words }) as const
  const partsAfter = async (parts: NonNullable<LlmAnswer['parts']>) => {
    const words = (type: string) => parts.flatMap((part) => (part.type === type ? [part.text] : [])).join('')
    const { answer: said } = await listen(
      model([], answer({ text: words('text'), reasoning: words('reasoning'), parts })),
    )
    expect(JSON.stringify({ ...said, parts: undefined })).not.toContain('4711')
    return said?.parts
  }
  const clean = [thought('Hm.'), text('Hello.')]
  expect(await partsAfter(clean)).toEqual(clean)
  const unsigned = [{ type: 'reasoning', text: 'Hm.' } as const, text('Hello.')]
  expect(await partsAfter(unsigned)).toEqual(unsigned)
  expect(await partsAfter([thought(`It is ${SECRET}.`), text('Hello.')])).toBeUndefined()
  expect(await partsAfter([thought('Hm.', SECRET), text('Hello.')])).toBeUndefined()
  // Escaped in the JSON that comes with a call.
  const data = `{"a":["\\u00${SECRET.charCodeAt(0).toString(16)}${SECRET.slice(1)}"]}`
  expect(data).not.toContain(SECRET)
  const kept = { type: 'reasoning', text: '', provider_data: { provider: 'openai', kind: 'tool_call', data } } as const
  expect(await partsAfter([kept])).toBeUndefined()
  // Escaped once more than a text is looked into.
  const deep = [1, 2, 3, 4].reduce((inner) => JSON.stringify({ a: inner }), SECRET)
  const nested = { ...kept, provider_data: { ...kept.provider_data, data: deep } }
  expect(await partsAfter([nested])).toBeUndefined()
  // Half of it in one part, and half in another one.
  expect(await partsAfter([text(SECRET.slice(0, 6)), thought('Hm.'), text(SECRET.slice(6))])).toBeUndefined()
})
