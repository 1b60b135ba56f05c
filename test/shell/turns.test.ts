import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createTurns } from '../../src/shell/turns.ts'

test('work is done in the order it was asked for, one at a time, from the end of what came before', async () => {
  const seen: string[] = []
  const inTurn = createTurns(delay(5).then(() => seen.push('before')))
  const work = (name: string, ms: number) => async () => {
    seen.push(`${name} begins`)
    await delay(ms)
    seen.push(`${name} ends`)
  }
  await Promise.all([inTurn(work('a', 5)), inTurn(work('b', 0))])
  expect(seen).toEqual(['before', 'a begins', 'a ends', 'b begins', 'b ends'])
})

test('a failure is its own', async () => {
  const inTurn = createTurns(Promise.reject(new Error('earlier')))
  const failing = inTurn(() => Promise.reject(new Error('mine')))
  const next = inTurn(async () => 'fine')
  await expect(failing).rejects.toThrow('mine')
  expect(await next).toBe('fine')
})

test('who is aborted while waiting is called at once, and those behind still wait for those before', async () => {
  const inTurn = createTurns()
  const seen: string[] = []
  const abort = new AbortController()
  const first = inTurn(() => delay(10).then(() => seen.push('first')))
  const second = inTurn(async () => seen.push('second'), abort.signal)
  const third = inTurn(async () => seen.push('third'))
  abort.abort()
  await Promise.all([first, second, third])
  expect(seen).toEqual(['second', 'first', 'third'])
})
