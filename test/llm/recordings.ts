/** Recorded streams, and what holds for each of them: read whole in any pieces, and cut at any byte. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import type { LlmConfig } from '../../src/contract/values/llm-config.ts'
import type { LlmAnswer } from '../../src/llm/llm.ts'
import { startScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import { ask, chatWith, shownText } from './asking.ts'
import { cutEverywhere } from './cutting.ts'
import { effort } from '../support/patience.ts'

/** The recordings of an API by name. Those of failures are named `.error.`. */
export function readRecordings(api: string): ReadonlyMap<string, Buffer> {
  const directory = join(import.meta.dirname, 'recordings', api)
  return new Map(readdirSync(directory).map((name) => [name, readFileSync(join(directory, name))]))
}

export function testRecording(bytes: Buffer, expected: LlmAnswer, config: LlmConfig): void {
  test('is reconstructed exactly, however its bytes arrive', async () => {
    let raw: Buffer[] = []
    await using model = await startScriptedModel(() => ({ raw }))
    const llm = chatWith(model, config)
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(bytes.length), { maxLength: 20 }), async (cuts) => {
        const borders = [0, ...cuts.sort((a, b) => a - b), bytes.length]
        raw = borders.slice(1).map((end, at) => bytes.subarray(borders[at], end))
        const { answer, deltas } = await ask(llm)
        expect(answer).toEqual(expected)
        expect(shownText(deltas)).toBe(expected.text)
        expect(shownText(deltas, 'reasoning')).toBe(expected.reasoning)
        for (const [index, call] of expected.toolCalls.entries()) {
          const pieces = deltas.filter((each) => each.kind === 'tool_input').filter((each) => each.index === index)
          expect(pieces.map((each) => each.text).join('')).toBe(call.arguments)
          expect(new Set(pieces.map((each) => `${each.id} ${each.name}`)).size).toBe(1)
        }
      }),
      { numRuns: effort(8, 500) },
    )
  })

  test.each(['close', 'break'] as const)('cut at any byte with a %s is the whole answer or none', async (how) => {
    const step = Math.ceil(bytes.length / effort(150, bytes.length))
    await cutEverywhere(bytes, { how, config, step }, ({ answer, error, deltas }) => {
      const shown = shownText(deltas)
      expect(expected.text.startsWith(shown)).toBe(true)
      if (answer) {
        const { usage: _, ...said } = answer
        const { usage: __, ...wanted } = expected
        return expect(said).toEqual(wanted)
      }
      expect(error).toMatchObject({ type: 'network', retryable: true })
      expect(error?.partial?.text ?? '').toBe(shown.trim() && shown)
      expect(error?.partial?.toolCalls ?? []).toEqual([])
      return expect(error?.partial?.parts).toBeUndefined()
    })
  })
}
