import { setImmediate as tick } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { Queue } from '../../src/lib/queue.ts'
import type { SlotLimits } from '../../src/lib/slots.ts'

/** Work named after its key and its number, which ends when the test says so. */
function setUp(limits: SlotLimits) {
  const queue = new Queue(limits)
  const begun: string[] = []
  const ends = new Map<string, () => void>()
  const run = (name: string, signal?: AbortSignal) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    ends.set(name, resolve)
    const work = async () => {
      begun.push(name)
      await promise
      return name
    }
    return queue.run(work, { key: name.charAt(0), signal })
  }
  return { queue, begun, run, end: (name: string) => (ends.get(name)?.(), tick()) }
}

describe('work', () => {
  test('runs up to the limit, the rest in the order it came', async () => {
    const { begun, run, end } = setUp({ limit: 2 })
    const all = ['a1', 'a2', 'a3', 'a4'].map((name) => run(name))
    await tick()
    expect(begun).toEqual(['a1', 'a2'])
    await end('a2')
    expect(begun).toEqual(['a1', 'a2', 'a3'])
    for (const name of ['a1', 'a3', 'a4']) await end(name)
    expect(await Promise.all(all)).toEqual(['a1', 'a2', 'a3', 'a4'])
  })

  test('never begins before run has returned', async () => {
    const { begun, run, end } = setUp({ limit: 1 })
    const done = run('a1')
    expect(begun).toEqual([])
    await end('a1')
    await done
    expect(begun).toEqual(['a1'])
  })

  test('that fails affects only its caller, and releases its slot', async () => {
    const queue = new Queue({ limit: 1 })
    const failing = queue.run(() => Promise.reject(new Error('no')))
    const next = queue.run(async () => 'yes')
    await expect(failing).rejects.toThrow('no')
    expect(await next).toBe('yes')
    expect([queue.active, queue.waiting]).toEqual([0, 0])
  })

  test('of a key at its limit waits, and that of another overtakes it', async () => {
    const { begun, run, end } = setUp({ limit: 10, perKey: 2 })
    const all = ['a1', 'a2', 'a3', 'b1'].map((name) => run(name))
    await tick()
    expect(begun).toEqual(['a1', 'a2', 'b1'])
    await end('a2')
    expect(begun.at(-1)).toBe('a3')
    for (const name of ['a1', 'a3', 'b1']) await end(name)
    expect(await Promise.all(all)).toEqual(['a1', 'a2', 'a3', 'b1'])
  })

  test('begins at once when the limit is raised, and with a lower one when enough has ended', async () => {
    const { queue, begun, run, end } = setUp({ limit: 1 })
    const all = ['a1', 'a2', 'b1', 'a3'].map((name) => run(name))
    queue.limit = 3
    await tick()
    expect(begun).toHaveLength(3)
    queue.limit = 1
    await end('a1')
    await end('a2')
    expect(begun).toHaveLength(3)
    await end('b1')
    expect(begun).toEqual(['a1', 'a2', 'b1', 'a3'])
    await end('a3')
    await Promise.all(all)
  })

  test('of waiting keys takes turns', async () => {
    const { begun, run, end } = setUp({ limit: 1, perKey: 1 })
    const all = ['a1', 'a2', 'a3', 'b1', 'c1'].map((name) => run(name))
    for (const name of ['a1', 'a2', 'b1', 'c1', 'a3']) await end(name)
    await Promise.all(all)
    expect(begun).toEqual(['a1', 'a2', 'b1', 'c1', 'a3'])
  })

  test('that is aborted while it waits does not begin, and is not waited for', async () => {
    const { queue, begun, run, end } = setUp({ limit: 1, perKey: 1 })
    const abort = new AbortController()
    const [first, second, third] = [run('a1'), run('a2', abort.signal), run('a3')]
    abort.abort(new Error('no longer'))
    await expect(second).rejects.toThrow('no longer')
    await expect(run('a4', abort.signal)).rejects.toThrow('no longer')
    expect(queue.waiting).toBe(1)
    await end('a1')
    await end('a3')
    expect(await Promise.all([first, third])).toEqual(['a1', 'a3'])
    expect(begun).toEqual(['a1', 'a3'])
  })

  test('that was admitted and then aborted begins: it handles its signal itself', async () => {
    const { begun, run, end } = setUp({ limit: 1 })
    const abort = new AbortController()
    const first = run('a1')
    const second = run('a2', abort.signal)
    const aborting = first.then(() => abort.abort())
    await end('a1')
    await aborting
    await end('a2')
    expect([await second, begun]).toEqual(['a2', ['a1', 'a2']])
  })
})

describe('places', () => {
  test('are given in the order of the requests', async () => {
    const queue = new Queue({ limit: 2 })
    const places = Array.from({ length: 5 }, () => queue.take())
    const order: number[] = []
    places.forEach((place, at) => void place.entry.then(() => order.push(at)))
    expect(places.map((place) => place.isFree)).toEqual([true, true, false, false, false])
    expect([queue.active, queue.waiting]).toEqual([2, 3])
    for (const place of places) {
      place.leave()
      place.leave()
      await place.entry
    }
    expect(order).toEqual([0, 1, 2, 3, 4])
    expect([queue.active, queue.waiting]).toEqual([0, 0])
  })

  test('are left on an abort, or by leaving, before they are given', async () => {
    const queue = new Queue({ limit: 1 })
    const first = queue.take()
    const abort = new AbortController()
    const [second, third, fourth] = [queue.take({ signal: abort.signal }), queue.take(), queue.take()]
    abort.abort()
    third.leave()
    expect([await second.entry, await third.entry]).toEqual([false, false])
    expect(await queue.take({ signal: abort.signal }).entry).toBe(false)
    first.leave()
    expect(await fourth.entry).toBe(true)
    second.leave()
    expect([queue.active, queue.waiting]).toEqual([1, 0])
  })
})
