import { expect, test } from 'vitest'
import { shareNext } from '../../src/lib/lazily.ts'

/** Work that ends when the test lets it, with the number of times that it began. */
function setWork() {
  const begun: PromiseWithResolvers<void>[] = []
  const work = () => {
    const each = Promise.withResolvers<void>()
    begun.push(each)
    return each.promise
  }
  return { begun, call: shareNext(work) }
}

test('each call is answered by work that began after it, and waiting calls share theirs', async () => {
  const { begun, call } = setWork()
  const order: string[] = []
  const note = (name: string) => call().then(() => order.push(name))
  const all = [note('first'), note('second'), note('third')]
  expect(begun).toHaveLength(1)
  begun[0]!.resolve()
  await all[0]
  await expect.poll(() => begun.length).toBe(2)
  expect(order).toEqual(['first'])
  begun[1]!.resolve()
  await Promise.all(all)
  expect(order).toEqual(['first', 'second', 'third'])
  // Nothing is active any more.
  void call()
  expect(begun).toHaveLength(3)
})

test('work that fails is reported to those who waited for it, and the next work begins', async () => {
  const { begun, call } = setWork()
  const [failed, next] = [call(), call()]
  begun[0]!.reject(new Error('The disk is gone.'))
  await expect(failed).rejects.toThrow('The disk is gone.')
  await expect.poll(() => begun.length).toBe(2)
  begun[1]!.resolve()
  await next
})
