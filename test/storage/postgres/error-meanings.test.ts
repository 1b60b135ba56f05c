/** What errors of a database and of the way to it mean: whether waiting helps, and what a caller is told. */
import { describe, expect, test } from 'vitest'
import { Problem } from '../../../src/contract/problem.ts'
import {
  DatabaseError,
  endsSession,
  isOutage,
  faultOfConnection,
  isReadOnly,
  LostConnection,
  LostStatement,
  mayConnectLater,
  toProblem,
} from '../../../src/storage/postgres/database-errors.ts'

const withCode = (code: string, message = 'it failed') => Object.assign(new Error(message), { code })

describe('a connection that was refused', () => {
  test.each([
    ...'EAI_AGAIN ECONNREFUSED ECONNRESET EHOSTUNREACH ENETUNREACH ENOTFOUND EPIPE ETIMEDOUT'.split(' '),
    ...'57P03 53300 57P01 08006'.split(' '),
  ])('may be made later after %s', (code) => {
    expect(mayConnectLater(withCode(code))).toBe(true)
  })

  test.each(['28P01', '3D000', '28000', 'CERT_HAS_EXPIRED', 'ERR_INVALID_URL', 'EACCES'])(
    'is refused again after %s',
    (code) => expect(mayConnectLater(withCode(code, 'timeout expired'))).toBe(false),
  )

  test.each([
    [new LostStatement('lost'), true],
    [new Error('timeout expired'), true],
    [new Error('Connection terminated unexpectedly'), true],
    [new Error('no timeout expired'), false],
    [new Error('wrong password'), false],
    ['timeout expired', false],
    [undefined, false],
  ])('without a code is judged by what it says: %s is %s', (error, expected) => {
    expect(mayConnectLater(error)).toBe(expected)
  })
})

test.each([
  [withCode('40001'), true],
  [withCode('25006'), true],
  [withCode('55P03'), true],
  [withCode('40P01'), true],
  [withCode('57014'), true],
  [withCode('23505'), false],
  [withCode('57P01'), true],
  [withCode('57P02'), true],
  [withCode('08006'), true],
  [new LostConnection(withCode('ECONNRESET')), true],
  [new LostConnection(withCode('CERT_HAS_EXPIRED')), true],
  [new LostConnection(new Error('timeout expired')), true],
  [withCode('ECONNRESET'), false],
  [withCode('ERR_INVALID_ARG_TYPE'), false],
  [new Error('without a code'), false],
  [new TypeError('a value is undefined'), false],
  [new LostStatement('lost'), true],
  [new DatabaseError('of another version'), false],
  [new Problem('not_found', 'none'), false],
  ['a text', false],
])('waiting helps after %s: %s', (error, expected) => {
  expect(isOutage(error)).toBe(expected)
  const problem = toProblem(error)
  if (expected) expect(problem).toMatchObject({ code: 'storage_unavailable', cause: error })
  else expect(problem).toBe(error)
})

test('a connection ends with the error of the server, or with another one that keeps its cause and its message', () => {
  const [ended, lost] = [withCode('57P01'), new LostStatement('lost')]
  expect([faultOfConnection(ended), faultOfConnection(lost)]).toEqual([ended, lost])
  const reset = withCode('ECONNREFUSED', 'nobody answers')
  expect(faultOfConnection(reset)).toMatchObject({ message: 'nobody answers', cause: reset })
  expect([reset, withCode('ERR_INVALID_ARG_VALUE')].map(faultOfConnection).map(mayConnectLater)).toEqual([true, false])
  expect(faultOfConnection('gone')).toMatchObject({ name: 'LostConnection', message: 'gone' })
})

test('a full disk and a standby have their own meaning, and only some errors of the server end a session', () => {
  expect(toProblem(withCode('53100'))).toMatchObject({ code: 'storage_full' })
  expect(['25006', '40001'].map((code) => isReadOnly(withCode(code)))).toEqual([true, false])
  expect(
    ['23505', '57P01', '57P02', '57P03', '08003', 'EPIPE', 'ABCDE'].map((code) => endsSession(withCode(code))),
  ).toEqual([false, true, true, false, true, true, true])
})
