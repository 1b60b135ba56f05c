import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { splitNulFields } from '../../../src/lib/text/nul-fields.ts'

function split(bytes: Uint8Array, cuts: readonly number[], maxLength: number): (string | undefined)[] {
  const fields: (string | undefined)[] = []
  const take = splitNulFields(maxLength, (field) => fields.push(field?.toString('latin1')))
  const borders = [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((a, b) => a - b)
  for (let i = 0; i < borders.length; i++) take(bytes.subarray(borders[i - 1] ?? 0, borders[i]))
  return fields
}

test('fields are complete and in order, however the chunks are split; one that is too long is undefined', () => {
  const field = fc.string({ unit: fc.constantFrom('a', 'b', '\n'), maxLength: 12 })
  fc.assert(
    fc.property(fc.array(field), fc.array(fc.nat()), (fields, cuts) => {
      const bytes = Buffer.from(fields.map((text) => `${text}\0`).join('') + 'unfinished')
      expect(split(bytes, cuts, 8)).toEqual(fields.map((text) => (text.length <= 8 ? text : undefined)))
    }),
  )
})
