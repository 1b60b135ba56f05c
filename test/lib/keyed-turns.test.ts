import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createKeyedTurns } from '../../src/lib/keyed-turns.ts'

test('what belongs to one key runs in turn, other keys beside it, and a failure fails its own caller only', async () => {
  const inTurn = createKeyedTurns()
  const log: string[] = []
  const work = (name: string, ms: number) => async () => {
    log.push(`${name} begins`)
    await sleep(ms)
    log.push(`${name} ends`)
    if (name.endsWith('!')) throw new Error(name)
    return name
  }
  const results = await Promise.allSettled([
    inTurn('a', work('a1!', 20)),
    inTurn('a', work('a2', 1)),
    inTurn('b', work('b1', 1)),
  ])
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled'])
  expect(log).toEqual(['a1! begins', 'b1 begins', 'b1 ends', 'a1! ends', 'a2 begins', 'a2 ends'])
})
