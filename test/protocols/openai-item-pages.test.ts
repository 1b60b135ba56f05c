/** Pages of the items of a conversation, read from the log of a real one. */
import { assert, asyncProperty, integer } from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import type { Conversation } from '../../src/conversations/conversation.ts'
import { findItem, pageOfItems } from '../../src/protocols/openai/conversation-items.ts'
import { say } from '../conversations/fixtures.ts'
import { setTurnBench, turnScripts } from '../support/turn-scripts.ts'

const bench = await setTurnBench()
afterAll(() => bench[Symbol.asyncDispose]())

type Order = 'asc' | 'desc'

async function idsIn(conversation: Conversation, order: Order, limit: number): Promise<string[]> {
  const ids: string[] = []
  for (let after: string | undefined; ;) {
    const { items, hasMore } = await pageOfItems(conversation, { after, limit, order })
    ids.push(...items.map(({ id }) => id))
    after = ids.at(-1)
    if (!hasMore) return ids
  }
}

test('property: pages of any size have the same items in both orders, and each of them is found', async () => {
  const conversation = await bench.converse({ tools: ['Bash'] })
  await assert(
    asyncProperty(turnScripts, integer({ min: 1, max: 9 }), async (turns, limit) => {
      bench.play(turns)
      await say(conversation)
      const all = await idsIn(conversation, 'asc', 1000)
      expect(new Set(all).size).toBe(all.length)
      expect(await idsIn(conversation, 'asc', limit)).toEqual(all)
      expect(await idsIn(conversation, 'desc', limit)).toEqual(all.toReversed())
      const newest = all.slice(-9)
      const found = await Promise.all(newest.map((id) => findItem(conversation, id)))
      expect(found.map((item) => item?.id)).toEqual(newest)
    }),
    { numRuns: 10 },
  )
})

test('a page reads its own turns, however many there are before and after them', async () => {
  const conversation = await bench.converse({})
  bench.play([])
  const talk = async (times: number) => {
    for (let time = 0; time < times; time++) await say(conversation)
  }
  const { log } = conversation
  let count = 0
  const read = log.read.bind(log)
  log.read = async (options) => {
    const page = await read(options)
    count += page.events.length
    return page
  }
  const cost = async (query: Parameters<typeof pageOfItems>[1]) => {
    count = 0
    const { items } = await pageOfItems(conversation, query)
    return { items: items.length, count }
  }
  await talk(60)
  const newest = { order: 'desc', limit: 3 } as const
  const before = await cost(newest)
  const middle = (await pageOfItems(conversation, { order: 'asc', limit: 8 })).items.at(-1)!.id
  const older = await cost({ ...newest, after: middle })
  await talk(20)
  expect(before.items).toBe(3)
  expect(await cost(newest)).toEqual(before)
  expect(await cost({ ...newest, after: middle })).toEqual(older)
  const whole = await cost({ order: 'desc', limit: 1000 })
  expect(whole.count).toBeGreaterThan(2 * Math.max(before.count, older.count))
})
