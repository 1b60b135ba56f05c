import { expect, test } from 'vitest'
import type { ReadOptions } from '../../src/events/event-store.ts'
import { ListEvents } from '../../src/contract/events-api.ts'
import { readEventPage } from '../../src/events/event-page.ts'
import { message, seqsOf, sharedLog, toolResult } from './fixtures.ts'

const LARGE = 700_000
const MAX_PAGE_CHARS = 2 * 1024 * 1024

test.each([
  [{}, [1, 2, 3, 4, 5, 6, 7, 8, 9]],
  [{ order: 'desc' }, [9, 8, 7, 6, 5, 4, 3, 2, 1]],
  [{ types: 'UserMessage' }, [1, 2, 4, 5, 7, 8]],
  [{ types: 'ToolResult', order: 'desc', limit: '1' }, [9, 6, 3]],
])('pages of large events are short, and all together have each event once: %o', async (query, seqs) => {
  await using shared = await sharedLog()
  const text = 'x'.repeat(LARGE)
  await shared.log.append(Array.from({ length: 9 }, (_, at) => (at % 3 === 2 ? toolResult(text) : message(text))))
  const seen: unknown[] = []
  for (let page_id: string | null | undefined; page_id !== null;) {
    const page = await readEventPage(shared.log, ListEvents.parse({ limit: '1000', ...query, page_id }), [])
    expect(page.events.reduce((sum, { json }) => sum + json.length, 0)).toBeLessThan(MAX_PAGE_CHARS + LARGE)
    seen.push(...seqsOf(page.events))
    page_id = page.nextPageId
  }
  expect(seen).toEqual(seqs)
})

test('no more is read than a page may have, unless most of it is left out', async () => {
  const boundFor = async (query: object) => {
    const asked: ReadOptions[] = []
    const read = async (options: ReadOptions) => (asked.push(options), { events: [], scannedTo: undefined })
    expect(await readEventPage({ read }, ListEvents.parse(query), [])).toEqual({ events: [], nextPageId: null })
    return asked.map(({ maxBytes }) => maxBytes)
  }
  expect(await boundFor({})).toEqual([MAX_PAGE_CHARS])
  expect(await boundFor({ after_seq: '3', order: 'desc' })).toEqual([MAX_PAGE_CHARS])
  expect(await boundFor({ types: 'UserMessage' })).toEqual([undefined])
  expect(await boundFor({ max_text: '100' })).toEqual([undefined])
})
