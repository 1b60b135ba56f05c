/** Endpoints that send too much, too deep or without an end: what is read of it is bounded, and the error says why. */
import type { ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { setImmediate as yieldToLoop } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { AnswerAssembly } from '../../src/llm/answer/answer-assembly.ts'
import { readAnswer } from '../../src/llm/answer/answer-stream.ts'
import { CHAT_COMPLETIONS } from '../../src/llm/providers.ts'
import type { ScriptedTurn } from '../../src/llm/scripted/script.ts'
import type { LlmPiece } from '../../src/llm/llm.ts'
import { HttpLlm } from '../../src/llm/http-llm.ts'
import { ask, askScript, delta, event, rawTurn, stop, toolCalls } from './asking.ts'
import { keepBusy } from '../support/take-time.ts'

const MIB = 1024 * 1024

const call = (index: number, fields: object, id = `call_${index}`) =>
  delta({ tool_calls: [{ index, id, function: fields }] })

/** Many events of one piece, so that no single one is too large. */
const repeated = (chunk: object, times: number): ScriptedTurn => ({
  raw: Array.from({ length: times }, () => event(chunk)),
})

test.each<readonly [what: string, turn: ScriptedTurn, why: RegExp]>([
  ['text', repeated(delta({ content: 'a'.repeat(MIB) }), 9), /longer than \d+ characters/],
  ['reasoning', repeated(delta({ reasoning_content: 'a'.repeat(MIB) }), 9), /longer than \d+ characters/],
  ['arguments', repeated(call(0, { name: 'Bash', arguments: 'a'.repeat(MIB) }), 9), /longer than \d+ characters/],
  [
    'calls',
    rawTurn(...Array.from({ length: 200 }, (_, at) => call(at, { name: 'Bash', arguments: '{}' })), toolCalls),
    /more than 128 tool calls/,
  ],
  [
    'values in its calls',
    rawTurn(
      ...Array.from({ length: 3 }, (_, at) => call(at, { name: 'Bash', arguments: `{"a":[${'0,'.repeat(40_000)}0]}` })),
      toolCalls,
    ),
    /tool calls hold more than 100000 values/,
  ],
  [
    'name of a call',
    rawTurn(call(0, { name: 'B'.repeat(1000), arguments: '{}' }), toolCalls),
    /name of a tool call is longer than/,
  ],
  ['line', { raw: ['data: ', ...Array.from({ length: 14 }, () => 'a'.repeat(MIB))] }, /event is longer than/],
  ['document', { raw: ['{"a":"', ...Array.from({ length: 14 }, () => 'a'.repeat(MIB))] }, /message of it is longer/],
  ['depth', { raw: [`data: ${'['.repeat(5000)}${']'.repeat(5000)}\n\n`] }, /nested more than 100 levels deep/],
  ['number of values', { raw: [`data: [${'0,'.repeat(60_000)}0]\n\n`] }, /more than 50000 values/],
])('too much of it, %s: the request ends with a reason', async (_what, turn, why) => {
  const { error, answer } = await askScript([turn])
  expect(answer).toBeUndefined()
  expect(error).toMatchObject({ type: 'network', retryable: false })
  expect(error?.message).toMatch(why)
})

test('an endless page that is not an answer is abandoned', async () => {
  const page = Array.from({ length: 1000 }, () => `<p>${'hello '.repeat(1000)}</p>\n`)
  const { error } = await askScript([{ raw: page, hang: true }])
  expect(error?.message).toMatch(/Chat Completions endpoint/)
})

test('arguments too deep for anyone are the text they are; the call is answered with a fault', async () => {
  const { answer } = await askScript([
    rawTurn(call(0, { name: 'Bash', arguments: `${'{"a":'.repeat(5000)}1${'}'.repeat(5000)}` }), toolCalls),
  ])
  expect(answer?.toolCalls).toHaveLength(1)
})

test('the body of an error is read to 64 KiB, and its connection ended', async () => {
  let sent = 0
  const server = createServer((request, response) => {
    request.resume()
    void flood(response)
  }).listen(0, '127.0.0.1')
  async function flood(response: ServerResponse): Promise<void> {
    const gone = new AbortController()
    response.on('close', () => gone.abort())
    response.writeHead(400, { 'content-type': 'application/json' })
    response.write('{"error":{"message":"the beginning ')
    for (; sent < 400 && !response.destroyed; sent++) {
      if (!response.write(Buffer.alloc(MIB, 0x20)))
        await once(response, 'drain', { signal: gone.signal }).catch(() => {})
    }
    response.end()
  }
  await once(server, 'listening')
  const base_url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  const before = process.memoryUsage().rss
  const { error } = await ask(new HttpLlm({ config: { model: 'm', base_url, num_retries: 0 } }))
  server.closeAllConnections()
  server.close()
  expect(error?.message).toContain('the beginning')
  expect(sent).toBeLessThan(50)
  expect(process.memoryUsage().rss - before).toBeLessThan(200 * MIB)
})

test.each([
  ['lists', '['.repeat(30_000) + ']'.repeat(30_000)],
  ['objects', `{"error":${'{"error":'.repeat(5000)}1${'}'.repeat(5000)}}`],
  ['values', `[${'0,'.repeat(30_000)}0]`],
])('an error whose body is %s too deep to be written again is a refusal like any other', async (_what, body) => {
  const { error } = await askScript([{ raw: [body], status: 400 }])
  expect(error).toMatchObject({ type: 'config', retryable: false })
  expect(error?.message).toMatch(/HTTP 400/)
})

test('an error in the stream that consists of spaces is classified fast', async () => {
  const { error } = await askScript([
    rawTurn(delta({ content: 'a' }), { error: { message: `${' '.repeat(100_000)}x` } }, stop),
  ])
  expect(error?.type).toBe('network')
})

const callsOf = (fragments: readonly (readonly [index: number, text: string])[]) =>
  delta({ tool_calls: fragments.map(([index, text]) => ({ index, function: { name: '', arguments: text } })) })

test('an answer in single characters of alternating calls is shown in few deltas, each call in order', async () => {
  const text = `{"thought":"${'abc'.repeat(500)}"}`
  const named = delta({
    tool_calls: [0, 1].map((index) => ({ index, id: `call_${index}`, function: { name: 'Think' } })),
  })
  const mixed = callsOf(Array.from(text).flatMap((char) => [0, 1].map((index) => [index, char] as const)))
  const { deltas, answer } = await askScript([rawTurn(named, mixed, toolCalls)])
  expect(answer?.toolCalls.map((each) => each.arguments)).toEqual([text, text])
  for (const index of [0, 1])
    expect(deltas.map((each) => (each.kind === 'tool_input' && each.index === index ? each.text : '')).join('')).toBe(
      text,
    )
  expect(deltas.length).toBeLessThan(100)
})

test('text and reasoning that alternate in one read are one delta each', async () => {
  const pair = [delta({ reasoning_content: 'r' }), delta({ content: 't' })]
  const events = Array.from({ length: 100 }, () => pair).flat()
  expect(await deltasOf([...events, stop].map(event).join(''))).toEqual([
    { kind: 'reasoning', text: 'r'.repeat(100) },
    { kind: 'text', text: 't'.repeat(100) },
  ])
})

test('text in the same read before a failure is shown', async () => {
  const shown: string[] = []
  const failing = [delta({ content: 'a' }), delta({ content: 'b' }), { error: { message: 'gone' } }].map(event).join('')
  await expect(deltasOf(failing, (text) => void shown.push(text))).rejects.toThrow('reported an error')
  expect(shown).toEqual(['ab'])
})

test('the event loop runs between the deltas of one read, however slow their reader is', async () => {
  const calls = callsOf(Array.from({ length: 100 }, (_, index) => [index, '{}']))
  const loop = { turns: 0, isOver: false }
  const counting = (async () => {
    for (; !loop.isOver; loop.turns++) await yieldToLoop()
  })()
  const turnsAt: number[] = []
  await deltasOf([calls, toolCalls].map(event).join(''), () => {
    turnsAt.push(loop.turns)
    keepBusy(2)
  })
  loop.isOver = true
  await counting
  expect(turnsAt).toHaveLength(100)
  expect(turnsAt.at(-1)! - turnsAt[0]!).toBeGreaterThan(2)
})

/** The deltas of an answer that comes in one read. */
async function deltasOf(text: string, onDelta: (text: string) => void = () => {}) {
  const answer = new AnswerAssembly({ model: 'm', takenIds: new Set(), costOf: () => undefined })
  const deltas: LlmPiece[] = []
  for await (const each of readAnswer(Readable.from([text]), answer, CHAT_COMPLETIONS.createReader())) {
    deltas.push(each)
    onDelta(each.text)
  }
  return deltas
}
