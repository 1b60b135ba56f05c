/** JSON is measured while it arrives exactly as it is measured whole. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { ComplexJson, refuseComplexJson } from '../../../src/lib/json/untrusted-json.ts'
import { JsonGauge, MAX_DEPTH, MAX_NAMES, MAX_VALUES } from '../../../src/mcp/transports/json-gauge.ts'

const faultOf = (work: () => void): string | undefined => {
  try {
    work()
    return undefined
  } catch (error) {
    expect(error).toBeInstanceOf(ComplexJson)
    return (error as ComplexJson).message
  }
}

function measure(text: string): void {
  const gauge = new JsonGauge()
  for (const byte of Buffer.from(text)) gauge.take(byte)
}

test.each([
  ['['.repeat(MAX_DEPTH) + ']'.repeat(MAX_DEPTH), undefined],
  ['['.repeat(MAX_DEPTH + 1), 'deep'],
  [`{"a":${'{"b":'.repeat(MAX_DEPTH)}`, 'deep'],
  [`["\\"[[[${'['.repeat(1000)}"]`, undefined],
  [`[${'{},'.repeat(MAX_VALUES / 2)}{}]`, 'values'],
  [`["${','.repeat(MAX_VALUES * 2)}"]`, undefined],
  [`{${'"n":1,'.repeat(MAX_NAMES - 1)}"n":1}`, undefined],
  [`{${'"n":1,'.repeat(MAX_NAMES)}"n":1}`, 'names'],
  [`["${':'.repeat(MAX_NAMES * 2)}"]`, undefined],
  // A quote or a bracket in another line of an event stream hides nothing.
  [`: "\ndata: ${'['.repeat(MAX_DEPTH + 1)}`, 'deep'],
  [`: ]]]]]]\rdata: ${'['.repeat(MAX_DEPTH + 1)}`, 'deep'],
])('%.30s', (text, fault) => {
  const found = faultOf(() => measure(text))
  if (fault === undefined) expect(found).toBeUndefined()
  else expect(found).toContain(fault)
})

test('any valid JSON has the same measure', () => {
  const limits = { depth: MAX_DEPTH, values: MAX_VALUES, names: MAX_NAMES }
  fc.assert(
    fc.property(fc.json({ maxDepth: 6 }), (text) => {
      expect(faultOf(() => measure(text))).toBe(faultOf(() => refuseComplexJson(text, limits)))
    }),
  )
})
