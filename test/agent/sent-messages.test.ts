/** A message is either withdrawn or sent to the model, and never both. */
import { setImmediate as tick } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { SentMessages } from '../../src/agent/model/sent-messages.ts'

function setUp() {
  let head = 3
  const sent = new SentMessages(() => head)
  return { sent, append: () => void head++ }
}

test('a request marks all that is stored by then as sent', () => {
  const { sent, append } = setUp()
  expect(sent.through).toBe(0)
  sent.mark()
  append()
  expect(sent.through).toBe(3)
})

test('a request waits until no withdrawal is being stored, however many there are', async () => {
  const { sent } = setUp()
  await sent.settled()
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  sent.holdFor(first.promise, () => true)
  let isSettled = false
  const settled = sent.settled().then(() => (isSettled = true))
  sent.holdFor(second.promise, () => true)
  first.resolve()
  await tick()
  expect([isSettled, sent.isWithdrawing]).toEqual([false, true])
  second.resolve()
  await settled
  expect(sent.isWithdrawing).toBe(false)
})

test('a withdrawal that failed lets the request continue, unless it may have been stored', async () => {
  const { sent } = setUp()
  const failed = new Error('there is no room')
  sent.holdFor(Promise.reject(failed), () => false)
  await sent.settled()
  expect(sent.isWithdrawing).toBe(false)
  sent.holdFor(Promise.reject(failed), () => true)
  await expect(sent.settled()).rejects.toBe(failed)
  expect(sent.isWithdrawing).toBe(false)
})
