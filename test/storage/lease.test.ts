import { expect, test } from 'vitest'
import { RenewedLease, startTimeLimit } from '../../src/storage/lease/lease.ts'

/** A lease that each renewal keeps for 8 s, and a clock that only the test moves. */
function setUp() {
  const clock = { ms: 1000, suspensions: 0 }
  const onSuspended = () => (clock.suspensions += 1)
  const lease = new RenewedLease({ validMs: 8000, beganAt: clock.ms, now: () => clock.ms, onSuspended })
  return { clock, lease }
}

test('a lease ends by itself, counted from before the request of the last renewal', () => {
  const { clock, lease } = setUp()
  clock.ms = 6000
  lease.renew(4000)
  clock.ms = 11_999
  expect(lease.isHeld).toBe(true)
  clock.ms = 12_000
  expect(lease.isHeld).toBe(false)
})

test('an answer that arrives after the time of its renewal is over renews nothing', () => {
  const { clock, lease } = setUp()
  clock.ms = 20_000
  lease.renew(11_000)
  expect(lease.isHeld).toBe(false)
  lease.renew(19_000)
  expect(lease.isHeld).toBe(true)
  lease.renew(20_000)
  expect(clock.suspensions).toBe(1)
})

test('what waits for a lease continues with its renewal, and ends with its signal or when the lease is lost', async () => {
  const { clock, lease } = setUp()
  clock.ms = 20_000
  const continued = lease.whenHeld()
  lease.renew(clock.ms)
  await continued
  clock.ms = 40_000
  const ended = new AbortController()
  const aborted = lease.whenHeld(ended.signal)
  const lost = lease.whenHeld()
  ended.abort(new Error('the run ended'))
  await expect(aborted).rejects.toThrow('the run ended')
  lease.lose(new Error('taken over'))
  await expect(lost).rejects.toThrow('taken over')
  lease.renew(clock.ms)
  expect(lease.isHeld).toBe(false)
})

test('its clock stands still while it is not held', () => {
  const { clock, lease } = setUp()
  const before = lease.heldMs
  clock.ms = 30_000
  expect(lease.heldMs - before).toBe(8000)
  lease.renew(clock.ms)
  expect(lease.heldMs - before).toBe(8000)
  clock.ms = 31_000
  expect(lease.heldMs - before).toBe(9000)
})

test('a time limit does not run out while the lease is not held', async () => {
  const { clock, lease } = setUp()
  let isOver = false
  clock.ms += 8000
  const { promise: over, resolve } = Promise.withResolvers<void>()
  startTimeLimit(1, lease, () => ((isOver = true), resolve()))
  const { promise: later, resolve: resolveLater } = Promise.withResolvers<void>()
  // Begins later and is longer, so the first one would be over by then.
  startTimeLimit(20, undefined, resolveLater)
  await later
  expect(isOver).toBe(false)
  lease.renew(clock.ms)
  clock.ms += 5
  await over
})

test('a listener is notified at once, and after each renewal, how long the lease is held', () => {
  const { clock, lease } = setUp()
  const heard: number[] = []
  lease.onRenewed((leftMs) => heard.push(leftMs))
  clock.ms = 5000
  lease.renew(4500)
  expect(heard).toEqual([8000, 7500])
})
