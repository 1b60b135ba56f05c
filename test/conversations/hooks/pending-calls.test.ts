/** Calls of hooks that nobody waits for: few at once, a bounded number that waits, and in order for one thing. */
import { expect, test } from 'vitest'
import { BackgroundHooks } from '../../../src/conversations/hooks/background-hooks.ts'
import { MAX_WAITING } from '../../../src/conversations/hooks/pending-calls.ts'
import { Problem } from '../../../src/contract/problem.ts'
import { until } from '../../support/until.ts'

function setUp() {
  const faults: unknown[] = []
  const ended: string[] = []
  const { files } = new BackgroundHooks((error) => faults.push(error))
  const begun: { key: string; how: string; lost: number; end: (error?: Error) => void }[] = []
  const change = (key: string, what: 'add' | 'change' | 'unlink') =>
    files.add(key, what, {
      call: async (how, lost) => {
        const { promise, resolve, reject } = Promise.withResolvers<void>()
        begun.push({ key, how, lost, end: (error) => (error ? reject(error) : resolve()) })
        await promise
      },
      onEnd: () => void ended.push(key),
    })
  /** Each ends as soon as it has begun. */
  const endAll = async () => {
    while (!files.isIdle) {
      for (const { end } of begun) end()
      await Promise.resolve()
    }
  }
  return { files, faults, begun, ended, change, endAll }
}

test('Four calls run at once, and beyond 256 that wait the oldest are dropped and counted', async () => {
  const { begun, change, endAll, files } = setUp()
  for (let at = 0; at < 4 + MAX_WAITING + 10; at++) change(`file-${at}`, 'add')
  expect(begun.map(({ key }) => key)).toEqual(['file-0', 'file-1', 'file-2', 'file-3'])
  expect(files.isIdle).toBe(false)
  await endAll()
  expect(begun).toHaveLength(4 + MAX_WAITING)
  expect(begun[4]).toMatchObject({ key: 'file-14', lost: 10 })
  expect(begun.slice(5).every(({ lost }) => lost === 0)).toBe(true)
})

test.each([
  [['add', 'change'], 'add'],
  [['unlink', 'add'], 'change'],
  [['change', 'unlink'], 'unlink'],
  [['add', 'unlink', 'add', 'change'], 'change'],
] as const)('The changes %j of a file while it waits are one call, with %s', async (changes, merged) => {
  const { begun, change, endAll } = setUp()
  change('a', 'change')
  // While a call about a file runs, no other one about it begins.
  for (const each of changes) change('a', each)
  expect(begun).toHaveLength(1)
  await endAll()
  expect(begun.map(({ how }) => how)).toEqual(['change', merged])
})

test('After the close nothing that waits begins, and nothing new', async () => {
  const { begun, change, files } = setUp()
  for (let at = 0; at < 10; at++) change(`file-${at}`, 'add')
  files.close()
  change('late', 'add')
  for (const { end } of begun) end()
  await until('it is idle', async () => files.isIdle)
  expect(begun).toHaveLength(4)
})

test('A call that fails keeps no other one from beginning, and only faults of the server are reported', async () => {
  const { begun, change, endAll, faults } = setUp()
  for (const key of ['a', 'b', 'c', 'd', 'e']) change(key, 'add')
  const fault = new Error('a defect')
  begun[0]!.end(new Problem('storage_full', 'The disk is full.'))
  begun[1]!.end(fault)
  await endAll()
  expect(begun).toHaveLength(5)
  expect(faults).toEqual([fault])
})

test('Each call has one end: its own, that of the call it became part of, or when it is dropped', async () => {
  const { change, files, ended, begun } = setUp()
  for (let at = 0; at < 4 + MAX_WAITING + 1; at++) change(`file-${at}`, 'add')
  expect(ended, 'dropped').toEqual(['file-4'])
  change('file-5', 'change')
  expect(ended, 'merged').toEqual(['file-4', 'file-5'])
  files.close()
  change('late', 'add')
  for (const { end } of begun) end()
  await until('all have ended', async () => files.isIdle)
  expect(ended).toHaveLength(4 + MAX_WAITING + 3)
})
