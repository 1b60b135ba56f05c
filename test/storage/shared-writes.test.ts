/** How writes are put together, put off and retried, whatever storage they go to. */
import { setImmediate as tick } from 'node:timers/promises'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { Retrier } from '../../src/storage/retrier.ts'
import { createGroupCommit } from '../../src/storage/shared/group-commit.ts'
import { openKeys } from '../../src/storage/shared/key-list.ts'
import { LatestWrites } from '../../src/storage/shared/latest-writes.ts'

afterEach(() => void vi.useRealTimers())

/** Work that ends when the test says so. */
function held<T>() {
  const open: { readonly item: T; readonly end: () => void; readonly fail: (error: Error) => void }[] = []
  const work = (item: T) => {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    open.push({ item, end: resolve, fail: reject })
    return promise
  }
  return { open, work }
}

describe('a group commit', () => {
  const MIB = 1024 * 1024

  test('commits the first item at once, and all that came meanwhile together', async () => {
    const { open, work } = held<readonly string[]>()
    const group = createGroupCommit<string>(work)
    for (const item of ['a', 'b', 'c']) group.add(item, 1)
    expect(open.map(({ item }) => item)).toEqual([['a']])
    let isSettled = false
    const settled = group.settled().then(() => (isSettled = true))
    open[0]!.end()
    await tick()
    expect([open[1]!.item, isSettled]).toEqual([['b', 'c'], false])
    open[1]!.end()
    await settled
    group.add('d', 1)
    expect(open[2]!.item).toEqual(['d'])
  })

  test('commits at most 8 MiB together, or one item of any size', async () => {
    const { open, work } = held<readonly string[]>()
    const group = createGroupCommit<string>(work)
    group.add('first', 1)
    group.add('a', 4 * MIB)
    group.add('b', 4 * MIB)
    group.add('c', 1)
    group.add('d', 9 * MIB)
    for (let at = 0; at < 4; at++) {
      open[at]!.end()
      await tick()
    }
    expect(open.map(({ item }) => item)).toEqual([['first'], ['a', 'b'], ['c'], ['d']])
  })
})

describe('the latest writes', () => {
  test('one write at a time is made of a conversation, and only the newest value waits', async () => {
    const { open, work } = held<string>()
    const writes = new LatestWrites((id, value) => work(`${id} ${JSON.stringify(value)}`))
    const first = writes.write('a', { n: 1 })
    await tick()
    const [second, third] = [writes.write('a', { n: 2 }), writes.write('a', { n: 3 })]
    void writes.write('b', { n: 9 })
    await tick()
    expect(open.map(({ item }) => item)).toEqual(['a {"n":1}', 'b {"n":9}'])
    open[0]!.end()
    await first
    await tick()
    expect(open[2]!.item).toBe('a {"n":3}')
    let isSettled = false
    const settled = writes.settled().then(() => (isSettled = true))
    for (const { end } of open) end()
    expect(isSettled).toBe(false)
    await Promise.all([second, third, settled])
  })

  test('a write that fails is reported to its caller, and the next one is made', async () => {
    const { open, work } = held<string>()
    const writes = new LatestWrites((id) => work(id))
    const first = writes.write('a', {})
    await tick()
    open[0]!.fail(new Error('there is no room'))
    await expect(first).rejects.toThrow('no room')
    await writes.written('a')
    const second = writes.write('a', {})
    await tick()
    open[1]!.end()
    await second
    expect(await writes.settled()).toBeUndefined()
  })
})

describe('a write that fails', () => {
  const BACKOFF = { firstMs: 100, longestMs: 400 }

  test('is tried again after waits that double up to a bound, until it succeeds', async () => {
    vi.useFakeTimers()
    let [tries, fails] = [0, true]
    const retrier = new Retrier(async () => {
      tries++
      if (fails) throw new Error('no')
    }, BACKOFF)
    await retrier.now()
    const seen: number[] = []
    for (const ms of [199, 1, 399, 1, 399, 1]) {
      await vi.advanceTimersByTimeAsync(ms)
      seen.push(tries)
    }
    expect(seen).toEqual([1, 2, 2, 3, 3, 4])
    fails = false
    await vi.advanceTimersByTimeAsync(400)
    expect([tries, vi.getTimerCount()]).toEqual([5, 0])
    retrier.later()
    retrier.later()
    await vi.advanceTimersByTimeAsync(100)
    expect([tries, vi.getTimerCount()]).toEqual([6, 0])
  })

  test('is tried again if that was asked for while it ran, and not after the end', async () => {
    vi.useFakeTimers()
    let tries = 0
    const retrier: Retrier = new Retrier(async () => {
      if (++tries === 1) retrier.later()
    }, BACKOFF)
    await retrier.now()
    await vi.advanceTimersByTimeAsync(200)
    expect([tries, vi.getTimerCount()]).toEqual([2, 0])
    retrier.later()
    retrier.stop()
    retrier.later()
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe('the keys of the data', () => {
  const [one, two] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)].map((key) => key.toString('base64')) as [string, string]

  test('a key is made once, and opened again with the key of the operator', () => {
    const made = openKeys([], [one])
    expect([made.sealed.length, made.isChanged, made.keys.locked]).toEqual([1, true, 0])
    expect(made.keys.material).toEqual([expect.any(String), one])
    expect(Buffer.from(made.keys.material[0], 'base64')).toHaveLength(32)
    expect(openKeys(made.sealed, [one])).toEqual({ ...made, isChanged: false })
  })

  test('they are sealed with the first key of the operator, and readable with the others before', () => {
    const made = openKeys([], [one])
    const moved = openKeys(made.sealed, [two, one])
    expect(moved.isChanged).toBe(true)
    expect(moved.keys.material).toEqual([made.keys.material[0], two, one])
    expect(openKeys(moved.sealed, [two])).toMatchObject({ isChanged: false, sealed: moved.sealed })
  })

  test('a key that cannot be opened stays, and the newest that can encrypts', () => {
    const lost = openKeys([], [one])
    const made = openKeys(lost.sealed, [two])
    expect([made.sealed.length, made.sealed[0], made.keys.locked]).toEqual([2, lost.sealed[0], 1])
    const both = openKeys(made.sealed, [two, one])
    expect(both.keys.material.slice(0, 2)).toEqual([made.keys.material[0], lost.keys.material[0]])
    expect(both.keys.locked).toBe(0)
  })
})
