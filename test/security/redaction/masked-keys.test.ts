import { describe, expect, test } from 'vitest'
import { redactMaskedKeys } from '../../../src/security/redaction/masked-keys.ts'

describe('a key that a provider has masked in part is taken out', () => {
  test.each([
    [
      'Incorrect API key provided: sk-abc*****wxyz. You can find your API key at https://platform.example.com/keys.',
      'Incorrect API key provided: <secret:masked>. You can find your API key at https://platform.example.com/keys.',
    ],
    ['Incorrect API key provided: sk-…****.', 'Incorrect API key provided: <secret:masked>.'],
    ["Invalid key 'sk-proj-12****************cdef'", "Invalid key '<secret:masked>'"],
    ['token abcd•••••••• is expired', 'token <secret:masked> is expired'],
    ['API key sk-12...9f is not valid', 'API key <secret:masked> is not valid'],
    ['API key sk-ab… is not valid', 'API key <secret:masked> is not valid'],
    ['api key gsk_xxxxxxxxxxxxabcd', 'api key <secret:masked>'],
    ['{"error":"bad key sk-a***b"}', '{"error":"bad key <secret:masked>"}'],
    ['keys a***b,c***d', 'keys <secret:masked>,<secret:masked>'],
  ])('%s', (message, expected) => {
    expect(redactMaskedKeys(message)).toBe(expected)
  })
})

test.each([
  'The model is **important** to choose…',
  'Waiting... please try again',
  'the key is missing',
  'Authorization failed ... try again',
  '*** error ***',
  'max_tokens: expected 1...4096',
])('anything else stays: %s', (message) => {
  expect(redactMaskedKeys(message)).toBe(message)
})

test('whether it is the configured key makes no difference', () => {
  expect(redactMaskedKeys('no sk-right***key')).toBe(redactMaskedKeys('no sk-wrong***key'))
})

test.each([
  ['ab...cd', true],
  ['ab...c', false],
  ['a...cd', false],
  ['a1...', true],
  ['a-...', true],
  ['a_...c', true],
  ['1...', false],
  ['ab..cd', false],
  ['ab…cd', true],
  ['abxxxcd', false],
  ['abxxxxcd', true],
  ['abXXXX', true],
  ['xxxx', false],
  ['a**b', false],
  ['***b', true],
  ['a***', true],
])('next to the word key, %s is a masked key: %j', (word, isMasked) => {
  expect(redactMaskedKeys(`key ${word}`)).toBe(`key ${isMasked ? '<secret:masked>' : word}`)
})
