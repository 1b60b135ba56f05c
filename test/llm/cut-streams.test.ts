import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { LlmAnswer } from '../../src/llm/llm.ts'
import { startScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import { ask, chatWith, delta, event, shownText, toolCalls } from './asking.ts'
import { cutEverywhere } from './cutting.ts'
import { anyText } from '../support/any-text.ts'
import { effort, IS_SOAK } from '../support/patience.ts'

/** Bytes from one cut to the next: some cuts are inside a character of four bytes. */
const STEP = IS_SOAK ? 1 : 3
const TEXT = 'Ich prüfe 🌳 das.'
const ARGUMENTS = [String.raw`{"command":"echo \"\u00e9\\n🌳\""}`, '{}']

const stream = Buffer.from(
  [
    ': hello\n\n',
    event(delta({ role: 'assistant', content: '' })),
    event(delta({ reasoning_content: 'Hm…' })),
    event(delta({ content: TEXT.slice(0, 11) })),
    event(delta({ content: TEXT.slice(11) })),
    event(delta({ tool_calls: [{ index: 0, id: 'a', function: { name: 'Bash', arguments: '' } }] })),
    event(delta({ tool_calls: [{ index: 0, function: { arguments: ARGUMENTS[0]?.slice(0, 20) } }] })),
    event(delta({ tool_calls: [{ index: 1, id: 'b', function: { name: 'Ls', arguments: ARGUMENTS[1] } }] })),
    event(delta({ tool_calls: [{ index: 0, function: { arguments: ARGUMENTS[0]?.slice(20) } }] })),
    event(toolCalls),
    event({ choices: [], usage: { prompt_tokens: 5, completion_tokens: 7 } }),
    'data: [DONE]\n\n',
  ].join(''),
)
const withoutText = Buffer.from(stream.toString().replace(/data:[^\n]*"content":"[^"][^\n]*\n\n/g, ''))

function expectNoHalfCalls(answer: LlmAnswer | undefined): void {
  for (const call of answer?.toolCalls ?? []) expect(ARGUMENTS).toContain(call.arguments)
}

describe.each(['close', 'break'] as const)('a stream that ends anywhere with a %s', (how) => {
  test('never returns half a call, fails only with an LlmError, and keeps the text so far', async () => {
    let answers = 0
    await cutEverywhere(stream, { how, step: STEP }, ({ answer, error, deltas }) => {
      expectNoHalfCalls(answer)
      expect(shownText(deltas)).toBe(TEXT.slice(0, shownText(deltas).length))
      if (answer) {
        answers += 1
        expect(answer).toMatchObject({ text: TEXT, reasoning: 'Hm…' })
        expect(answer.toolCalls.map((call) => call.arguments)).toEqual(ARGUMENTS)
        return
      }
      expect(error).toMatchObject({ type: 'network', retryable: true })
      expect(error?.partial?.text ?? '').toBe(shownText(deltas))
      expect(error?.partial?.toolCalls ?? []).toEqual([])
    })
    // From the finish reason on, nothing that is missing matters.
    expect(answers).toBeGreaterThan(50 / STEP)
  })

  test('has no partial answer where no text was said', async () => {
    await cutEverywhere(withoutText, { how, step: STEP }, ({ answer, error }) => {
      expectNoHalfCalls(answer)
      expect(error?.partial).toBeUndefined()
    })
  })
})

test('a stream is the same answer however its bytes arrive', async () => {
  let raw: Buffer[] = []
  await using model = await startScriptedModel(() => ({ raw }))
  const llm = chatWith(model)
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(stream.length), { maxLength: 30 }), async (cuts) => {
      const borders = [0, ...cuts.sort((a, b) => a - b), stream.length]
      raw = borders.slice(1).map((end, at) => stream.subarray(borders[at], end))
      const { answer, deltas } = await ask(llm)
      expect(answer).toEqual({
        text: TEXT,
        reasoning: 'Hm…',
        toolCalls: [
          { id: 'a', name: 'Bash', arguments: ARGUMENTS[0] },
          { id: 'b', name: 'Ls', arguments: ARGUMENTS[1] },
        ],
        usage: { input_tokens: 5, output_tokens: 7, cached_tokens: 0, reasoning_tokens: 0 },
        costUsd: undefined,
        stopReason: 'tool_calls',
        model: 'test-model',
        provider: 'openai',
      })
      expect(shownText(deltas)).toBe(TEXT)
      for (const index of [0, 1]) {
        const pieces = deltas.filter((each) => each.kind === 'tool_input').filter((each) => each.index === index)
        expect(pieces.map(({ text }) => text).join('')).toBe(ARGUMENTS[index])
        expect(new Set(pieces.map(({ id, name }) => `${id} ${name}`))).toEqual(new Set([['a Bash', 'b Ls'][index]]))
      }
    }),
    { numRuns: effort(15, 2000) },
  )
})

const fragment = fc.record(
  {
    index: fc.constantFrom(0, 1, null),
    id: fc.constantFrom('', 'a', 'b'),
    function: fc.record(
      {
        name: fc.constantFrom('', 'Bash', null),
        arguments: fc.oneof(fc.constantFrom('', '{', '}', '{"a":1}', null), fc.object()),
      },
      { requiredKeys: [] },
    ),
  },
  { requiredKeys: [] },
)
const odd = fc.oneof(
  fc.record({ content: fc.oneof(anyText(), fc.constant(null), fc.jsonValue()) }),
  fc.record({ tool_calls: fc.oneof(fc.array(fragment, { maxLength: 3 }), fc.jsonValue()) }),
  fc.jsonValue(),
)

test('whatever a stream holds, it ends in an answer with unique ids or in an LlmError', async () => {
  let raw: string[] = []
  await using model = await startScriptedModel(() => ({ raw }))
  const llm = chatWith(model)
  await fc.assert(
    fc.asyncProperty(fc.array(odd, { maxLength: 8 }), fc.jsonValue(), async (deltas, last) => {
      raw = [...deltas.map((each) => event({ choices: [{ delta: each }] })), event({ choices: last })]
      raw.push(event(toolCalls))
      const { answer, error } = await ask(llm)
      expect(Boolean(answer) || Boolean(error)).toBe(true)
      const ids = answer?.toolCalls.map(({ id }) => id) ?? []
      expect(new Set(ids).size).toBe(ids.length)
      expect(ids).not.toContain('')
    }),
    { numRuns: effort(15, 2000) },
  )
})
