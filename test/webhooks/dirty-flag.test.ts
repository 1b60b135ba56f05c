/** The mark is there before what it stands for. */
import { expect, test } from 'vitest'
import { DirtyFlag } from '../../src/webhooks/dirty-flag.ts'

function setUp() {
  const done: string[] = []
  const sets: PromiseWithResolvers<void>[] = []
  const mark = new DirtyFlag({
    set: async () => {
      done.push('set')
      const set = Promise.withResolvers<void>()
      sets.push(set)
      await set.promise
      done.push('is set')
    },
    clear: async () => void done.push('clear'),
  })
  const work = (name: string) => mark.during(async () => void done.push(name), true)
  return { done, sets, mark, work }
}

test('work waits for it, in order; later work begins immediately', async () => {
  const { done, sets, mark, work } = setUp()
  const waiting = [work('one'), work('two')]
  await Promise.resolve()
  expect(done).toEqual(['set'])
  sets[0]!.resolve()
  const third = sets[0]!.promise.then(() => work('three'))
  await Promise.all([...waiting, third])
  expect(done).toEqual(['set', 'is set', 'one', 'two', 'three'])
  const last = work('four')
  expect(done.at(-1)).toBe('four')
  await last
  expect(mark.raise()).toBeUndefined()
})

test('work that does not need it begins immediately', async () => {
  const { done, mark } = setUp()
  await mark.during(async () => void done.push('one'), false)
  expect(done).toEqual(['one'])
})

test('it is not cleared while work is in progress or while it is being set', async () => {
  const { done, sets, mark, work } = setUp()
  const one = work('one')
  await mark.lower()
  sets[0]!.resolve()
  await one
  const inside = Promise.withResolvers<void>()
  const under = mark.during(() => inside.promise, true)
  await mark.lower()
  expect(done).not.toContain('clear')
  inside.resolve()
  await under
  await mark.lower()
  expect(done.at(-1)).toBe('clear')
  void work('two')
  await Promise.resolve()
  expect(done.at(-1)).toBe('set')
})

test('a failure to set it prevents the work, and the next work retries', async () => {
  const { done, sets, work } = setUp()
  const one = work('one')
  await Promise.resolve()
  sets[0]!.reject(Object.assign(new Error('no room'), { code: 'ENOSPC' }))
  await expect(one).rejects.toMatchObject({ code: 'storage_full' })
  const two = work('two')
  await Promise.resolve()
  sets[1]!.resolve()
  await two
  expect(done).toEqual(['set', 'set', 'is set', 'two'])
})
