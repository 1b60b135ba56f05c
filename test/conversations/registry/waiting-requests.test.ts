import { expect, test } from 'vitest'
import type { WaitingRequest } from '../../../src/contract/request.ts'
import type { Bench } from '../fixtures.ts'
import { call, eventsOf, setBench, tool, userText } from '../fixtures.ts'
import { uuid7 } from '../../../src/lib/uuid7.ts'
import { approvalsOf, untilOpen } from '../../support/answering.ts'

const IDLE = { idle: { afterMs: 20, isShort: () => false } }
const ACT = tool('Act', () => ({ output: 'acted' }))

const setWaiting = (calls = 1) =>
  setBench({
    manager: IDLE,
    script: Array.from({ length: 40 }, () => ({ calls: Array.from({ length: calls }, () => call('Act')) })),
    tools: [ACT],
  })

/** A conversation that waits. With `inUse` it stays open until what is added there is called. */
async function wait(bench: Bench, fields: object = {}, inUse: (() => void)[] = []): Promise<string> {
  const id = await bench.create({ confirmation_mode: true, ...fields })
  inUse.push(bench.manager.hold(id))
  const conversation = await bench.manager.open(id)
  await conversation.post(userText('go', true))
  await untilOpen(conversation, 'permission')
  return id
}

async function pagesOf(bench: Bench, limit: number): Promise<WaitingRequest[][]> {
  const pages: WaitingRequest[][] = []
  for (let page_id: string | undefined; ;) {
    const { items, next_page_id } = await bench.manager.requests({ limit, ...(page_id !== undefined && { page_id }) })
    pages.push(items)
    if (next_page_id === null) return pages
    page_id = next_page_id
  }
}

const idsIn = (pages: readonly WaitingRequest[][]) => pages.flat().map(({ conversation_id: id }) => id)

test('what waits in all conversations is listed with the oldest first, whether they are open or at rest', async () => {
  await using bench = await setWaiting()
  const ids: string[] = []
  const inUse: (() => void)[] = []
  for (let n = 0; n < 5; n++) ids.push(await wait(bench, { title: `No. ${n}`, user_id: n % 2 ? 'odd' : 'even' }, inUse))
  await bench.create()
  for (const rest of [false, true]) {
    if (rest) for (const release of inUse) release()
    if (rest) await expect.poll(() => bench.manager.openCount).toBe(0)
    for (const limit of [1, 2, 3, 5, 9]) {
      const pages = await pagesOf(bench, limit)
      expect(idsIn(pages), `${limit} on a page`).toEqual(ids)
      expect(pages.map(({ length }) => length)).toEqual(
        Array.from({ length: Math.ceil(5 / limit) }, (_, at) => Math.min(limit, 5 - at * limit)),
      )
    }
    const odd = await bench.manager.requests({ limit: 9 }, ({ userId }) => userId === 'odd')
    expect(odd.items).toMatchObject([{ title: 'No. 1', user_id: 'odd' }, { title: 'No. 3' }])
    const questions = await bench.manager.requests({ limit: 9, kinds: new Set(['question'] as const) })
    expect(questions.items).toEqual([])
  }
  expect(bench.manager.openCount, 'nothing was opened for it').toBe(0)
  // One is open, and one has been answered.
  const answered = await bench.manager.open(ids[2]!)
  await approvalsOf(answered).reject()
  expect(idsIn(await pagesOf(bench, 2))).toEqual(ids.filter((id) => id !== ids[2]))
})

test('a request that is opened between two pages is on a later one', async () => {
  await using bench = await setWaiting()
  const inUse: (() => void)[] = []
  const ids = [await wait(bench, {}, inUse), await wait(bench, {}, inUse), await wait(bench, {}, inUse)]
  for (const release of inUse) release()
  await expect.poll(() => bench.manager.openCount).toBe(0)
  await pagesOf(bench, 1)
  const { next_page_id } = await bench.manager.requests({ limit: 1 })
  // As a request does it: otherwise it may be closed as idle meanwhile.
  const release = bench.manager.hold(ids[0]!)
  const first = await bench.manager.open(ids[0]!)
  await approvalsOf(first).approve(approvalsOf(first).pending().items[0]!.request_id)
  await expect.poll(() => approvalsOf(first).pending().items).toHaveLength(1)
  release()
  await expect.poll(() => bench.manager.openCount).toBe(0)
  const { items } = await bench.manager.requests({ limit: 9, page_id: next_page_id! })
  expect(items.map(({ conversation_id: id }) => id)).toEqual([ids[1], ids[2], ids[0]])
})

test('a page id that this server has not issued is refused', async () => {
  await using bench = await setWaiting()
  await expect(bench.manager.requests({ limit: 1, page_id: 'made up' })).rejects.toMatchObject({
    code: 'invalid_cursor',
  })
})

test('a host that a killed server asked about does not wait any more, also before its conversation is opened', async () => {
  await using bench = await setWaiting()
  const id = await bench.create()
  const { log } = await bench.manager.open(id)
  const request = { kind: 'network' as const, request_id: uuid7(), tool_use_ids: [] }
  const opened = { type: 'RequestOpened' as const, source: 'environment' as const, ...request }
  await log.append([{ ...opened, payload: { host: 'a.test', port: 443 } }])
  await bench.restart({ kill: true })
  expect(bench.manager.openCount).toBe(0)
  expect((await bench.manager.requests({ limit: 9 })).items).toEqual([])
  const events = await eventsOf(await bench.manager.open(id))
  expect(events.at(-1)).toMatchObject({ type: 'RequestClosed', ...request, reason: 'server_restart' })
})
