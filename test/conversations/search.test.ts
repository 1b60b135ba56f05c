/** What a search promises while others search at the same time, or leave. */
import { expect, test } from 'vitest'
import { SearchEvents } from '../../src/contract/search.ts'
import type { ConversationSearchDeps } from '../../src/conversations/search/search.ts'
import { ConversationSearch } from '../../src/conversations/search/search.ts'
import { queriedWords } from '../../src/conversations/search/words.ts'
import type { IndexedPart } from '../../src/storage/search-index.ts'
import { until } from '../support/until.ts'

const ID = '0199a1f0-5c3e-7d12-9b1a-2f6d8c40a7e1'

/** One conversation, whose log has `lastSeq` events without words, and an index that stores when it is told to. */
function setUp() {
  const state = { lastSeq: 1, asked: 0, stored: [] as IndexedPart[] }
  const gates: PromiseWithResolvers<void>[] = []
  const view = () => ({
    head: state.lastSeq,
    read: async () => ({ events: [], scannedTo: undefined }),
    [Symbol.asyncDispose]: async () => {},
  })
  const index = {
    heads: async () => new Map<string, number>(),
    async add(parts: readonly IndexedPart[]) {
      const gate = Promise.withResolvers<void>()
      gates.push(gate)
      await gate.promise
      state.stored.push(...parts)
    },
    forget: async () => {},
    async find() {
      state.asked++
      return []
    },
  }
  const registry = {
    all: () => [{ id: ID, lastSeq: state.lastSeq }],
    get: () => undefined,
    upToDate: async () => {},
  }
  const deps = { registry, hidden: new Set(), index, logs: { view: async () => view() }, logger: { warn() {} } }
  const search = new ConversationSearch(deps as unknown as ConversationSearchDeps)
  const nextGate = async () => await until('the index to store', async () => gates.shift())
  return { state, search, nextGate }
}

const query = SearchEvents.parse({ q: 'word' })

test('a search is complete with what was stored before it, also if another one was indexing then', async () => {
  const { state, search, nextGate } = setUp()
  const first = search.page(query)
  const gate = await nextGate()
  state.lastSeq = 2
  const second = search.page(query)
  gate.resolve()
  await first
  const last = await nextGate()
  last.resolve()
  expect((await second).is_complete).toBe(true)
  expect(state.stored.map(({ through }) => through)).toEqual([1, 2])
  await search[Symbol.asyncDispose]()
})

test('the index is not asked for a client that has left', async () => {
  const { state, search, nextGate } = setUp()
  const leaving = new AbortController()
  const asked = search.page(query, { signal: leaving.signal })
  const gate = await nextGate()
  leaving.abort()
  gate.resolve()
  await expect(asked).rejects.toThrow(/abort/)
  expect(state.asked).toBe(0)
  await search[Symbol.asyncDispose]()
})

test('a word that another word of the query begins with is not asked for', () => {
  expect(queriedWords('t to tot totals csv c')).toEqual(['totals', 'csv'])
  expect(queriedWords('same Same SAME')).toEqual(['same'])
})
