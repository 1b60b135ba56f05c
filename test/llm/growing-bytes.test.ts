import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { createGrowingBytes } from '../../src/llm/request/growing-bytes.ts'

test('is the UTF-8 of all appended text, whatever its length', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'grapheme', maxLength: 5000 }), { maxLength: 20 }), (texts) => {
      const growing = createGrowingBytes()
      for (const text of texts) growing.append(text)
      expect(growing.bytes().toString()).toBe(Buffer.from(texts.join('')).toString())
      expect(growing.isEmpty).toBe(texts.join('') === '')
    }),
    { numRuns: 50 },
  )
})
