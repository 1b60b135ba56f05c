import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { canonicalJson } from '../../../src/lib/json/canonical-json.ts'

test('the example of RFC 8785, section 3.2', () => {
  const value: unknown = JSON.parse(String.raw`{
    "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
    "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
    "literals": [null, true, false]
  }`)
  expect(canonicalJson(value)).toBe(
    String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
  )
})

test('keys are sorted by UTF-16 code units, as in section 3.2.3', () => {
  const value: unknown = JSON.parse(
    String.raw`{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7,"10":8,"2":9}`,
  )
  expect(canonicalJson(value)).toBe(
    '{"\\r":2,"1":4,"10":8,"2":9,"\u0080":6,"\u00f6":7,"\u20ac":1,"\ud83d\ude00":5,"\ufb33":3}',
  )
})

test.each([
  ['-0', '0'],
  ['5e-324', '5e-324'],
  ['1.7976931348623157e308', '1.7976931348623157e+308'],
  ['9007199254740992', '9007199254740992'],
  ['295147905179352830000', '295147905179352830000'],
  ['1e21', '1e+21'],
  ['999999999999999900000', '999999999999999900000'],
  ['333333333.33333325', '333333333.33333325'],
])('the number %s is written %s, as in appendix B', (text, canonical) => {
  expect(canonicalJson(JSON.parse(text))).toBe(canonical)
})

test('is JSON of the same value, and the same text for any order of the keys', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = canonicalJson(value)
      expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)))
      expect(canonicalJson(turnAround(value))).toBe(text)
    }),
  )
})

test('different values have different texts', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
      const [left, right] = [a, b].map((value) => JSON.parse(JSON.stringify(value)) as unknown)
      expect(canonicalJson(left) === canonicalJson(right)).toBe(isSame(left, right))
    }),
  )
})

test('a key named __proto__ is a key like others', () => {
  expect(canonicalJson(JSON.parse('{"b":1,"__proto__":{"a":2}}'))).toBe('{"__proto__":{"a":2},"b":1}')
})

function turnAround(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(turnAround)
  if (typeof value !== 'object' || value === null) return value
  return JSON.parse(
    `{${Object.entries(value)
      .toReversed()
      .map(([key, item]) => `${JSON.stringify(key)}:${JSON.stringify(turnAround(item))}`)
      .join(',')}}`,
  )
}

function isSame(a: unknown, b: unknown): boolean {
  try {
    expect(a).toEqual(b)
    return true
  } catch {
    return false
  }
}
