import { constants } from 'node:os'
import { expect, test } from 'vitest'
import { codeOf, isOutOfRoom } from '../../src/lib/error-code.ts'

/** As Node makes it of a number that libuv does not know. */
const unknownError = (number: number) => {
  const code = `Unknown system error -${number}`
  return Object.assign(new Error(`${code}: ${code}, write`), { errno: -number, code, syscall: 'write' })
}

test('an exceeded quota is a lack of room, although Node does not know this error', () => {
  expect(codeOf(unknownError(constants.errno.EDQUOT))).toBe('EDQUOT')
  expect(isOutOfRoom(unknownError(constants.errno.EDQUOT))).toBe(true)
})

test('an error that the system does not name, either, keeps its code', () => {
  expect(codeOf(unknownError(4000))).toBe('Unknown system error -4000')
  expect(codeOf(new Error('no code'))).toBeUndefined()
})
