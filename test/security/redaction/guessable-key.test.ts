import { randomBytes, randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { findWeakness } from '../../../src/security/redaction/guessable-key.ts'

describe('a key that can be guessed', () => {
  test.each([
    'secret',
    'password',
    'Tr0ub4dor&3',
    'hunter2-hunter2',
    '0123456789abcdef',
    'abcdefghijklmnopqrstuvwxyz',
    '12345678901234567890',
    'qwertyuiopasdfghjkl',
    'qwertz1234567890asdf',
    'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',
    'abababababababababababab',
    'abcdefgh1abcdefgh1abcdefgh1',
    'passwordpassword',
    'password-password-123',
    'P4ssw0rd-Adm1n-2024',
    'my-secret-master-key',
    'test-master-key-0123456789',
    'super-secret-production-key',
    'correct horse battery staple',
    'correcthorsebatterystaple',
    'changeme-changeme-please',
    'OpenHands-Agent-Server-2026',
    'this-is-a-very-secure-key',
    'letmein-letmein-letmein1',
    'Company2026Production!',
    'zxcvbnm-asdfghjkl-qwertyuiop',
    '1111222233334444',
    '9876543210987654321',
    'monkey tiger elephant lion',
  ])('%s', (key) => {
    expect(findWeakness(key)).toBeTypeOf('string')
  })
})

test('the description of a key contains no part of it', () => {
  for (const key of ['hunter2', 'swordfish-swordfish', 'zzzzzzzzzzzzzzzzzzzzzz', 'master-key-of-the-server'])
    expect(findWeakness(key)).not.toContain(key.slice(0, 6))
})

test.each([
  ['hexadecimal, 16 bytes', () => randomBytes(16).toString('hex')],
  ['hexadecimal, 32 bytes, as --generate-key makes it', () => randomBytes(32).toString('hex')],
  ['base64, 16 bytes', () => randomBytes(16).toString('base64')],
  ['base64url, 32 bytes', () => randomBytes(32).toString('base64url')],
  ['a UUID', () => randomUUID()],
  ['with a prefix', () => `sk-agent-${randomBytes(18).toString('base64url')}`],
])('a random key is not guessable: %s', (_, make) => {
  for (let times = 0; times < 1000; times++) {
    const key = make()
    expect(findWeakness(key), key).toBeUndefined()
  }
})

describe('a key counts by the characters that it has', () => {
  // Each has 16 characters that follow no word and no row of a keyboard, and is strong only with all of its kinds.
  test.each(['z9x4k7q2w8v3n6j5', 'z9X4k7Q2w8V3n6J5', 'z9-x4k7q2w8v3n6#', '9z4x7k2q8w3v6n5j'])('%s is strong', (key) => {
    expect(findWeakness(key)).toBeUndefined()
  })

  test.each([
    '7294150836172940',
    '8a3f91c07e5b2d4',
    'z9x4k7q2w8v11111',
    'Z9X4K7Q2W8V11111',
    'z9X4k7Q2password',
    'z-x#k+q%w=password',
    'Z-X#K+Q%W=PASSWORD',
    '9-4#7+2%8=3-11111',
  ])('%s is not', (key) => {
    expect(findWeakness(key)).toBeTypeOf('string')
  })
})
