/** Lists and counts over orders that are kept up to date, beside a model that sorts and filters all of them each time. */
import { describe, expect, test } from 'vitest'
import { ListConversations } from '../../../src/contract/conversation.ts'
import type { Status } from '../../../src/contract/events/status.ts'
import { Summaries } from '../../../src/conversations/registry/summaries.ts'
import type { Summary } from '../../../src/storage/storage.ts'
import type { Random } from '../../support/random.ts'
import { createRandom } from '../../support/random.ts'
import { effort } from '../../support/patience.ts'

const STATUSES: readonly Status[] = ['idle', 'running', 'paused', 'error']
const START_MS = Date.parse('2026-01-31T12:00:00.000Z')
const at = (second: number) => START_MS + second * 1000

/** Few seconds and users, so that many are alike. */
function summaryOf(id: string, random: Random): Summary {
  return {
    id,
    status: random.pick(STATUSES),
    lastSeq: 1,
    createdAt: at(random.below(8)),
    updatedAt: at(random.below(8)),
    title: random.pick([undefined, 'Report', 'Other']),
    profile: undefined,
    userId: random.pick([undefined, 'a', 'b']),
    labels: random.pick([[], ['urgent'], ['nightly', 'urgent']]),
    fields: random.pick<Record<string, string>>([{}, { ticket: '17' }]),
    preview: random.pick(['', 'write a REPORT', 'hello']),
    lastWords: '',
    model: random.pick([undefined, 'gpt-5', 'gpt-6']),
    costUsd: undefined,
    isArchived: random.pick([false, true]),
    waiting: 0,
    waitsSince: random.pick([undefined, at(1)]),
    deadline: undefined,
    idempotency: undefined,
  }
}

function queryOf(random: Random): ListConversations {
  const time = () => random.pick([undefined, undefined, new Date(at(random.below(8))).toISOString()])
  return ListConversations.parse({
    status: random.pick([undefined, ...STATUSES, 'idle,paused', ['error', 'running']]),
    model: random.pick([undefined, undefined, 'gpt-5']),
    archived: random.pick([undefined, undefined, 'true', 'false']),
    sort: random.pick([undefined, 'updated_at']),
    user_id: random.pick([undefined, undefined, 'a']),
    label: random.pick([undefined, undefined, 'urgent', ['urgent', 'nightly']]),
    metadata: random.pick([undefined, undefined, 'ticket=17']),
    q: random.pick([undefined, undefined, 'report']),
    created_after: time(),
    created_before: time(),
    updated_after: time(),
    updated_before: time(),
    order: random.pick(['asc', 'desc']),
    limit: 1 + random.below(7),
  })
}

function expectedIds(all: Iterable<Summary>, query: ListConversations): string[] {
  const from = (time: number, bound: string | undefined) => bound === undefined || time >= Date.parse(bound)
  const before = (time: number, bound: string | undefined) => bound === undefined || time < Date.parse(bound)
  const fitting = [...all].filter(
    (one) =>
      (query.status === undefined || query.status.has(one.status)) &&
      (query.model === undefined || one.model === query.model) &&
      (query.archived === undefined || one.isArchived === query.archived) &&
      (query.user_id === undefined || one.userId === query.user_id) &&
      [...(query.label ?? [])].every((label) => one.labels.includes(label)) &&
      (query.metadata === undefined || one.fields['ticket'] === '17') &&
      (query.q === undefined || /report/i.test(`${one.title ?? ''}\n${one.preview}`)) &&
      from(one.createdAt, query.created_after) &&
      before(one.createdAt, query.created_before) &&
      from(one.updatedAt, query.updated_after) &&
      before(one.updatedAt, query.updated_before),
  )
  const isByUpdate = query.sort === 'updated_at'
  const key = ({ createdAt, updatedAt, id }: Summary) => `${isByUpdate ? updatedAt : createdAt} ${id}`
  const sorted = fitting.sort((a, b) => (key(a) < key(b) ? -1 : 1)).map(({ id }) => id)
  return query.order === 'asc' ? sorted : sorted.toReversed()
}

function allPages(summaries: Summaries, query: ListConversations): string[] {
  const ids: string[] = []
  for (let page_id: string | undefined; ;) {
    const page = summaries.page({ ...query, page_id })
    expect(page.ids.length).toBeLessThanOrEqual(query.limit)
    ids.push(...page.ids)
    if (page.nextPageId === null) return ids
    page_id = page.nextPageId
  }
}

describe('lists and counts', () => {
  test('equal a sort and a filter over all, after any additions, changes and removals', () => {
    for (let seed = 1; seed <= effort(30, 2000); seed++) {
      const random = createRandom(seed)
      const model = new Map<string, Summary>()
      const summaries = new Summaries()
      const addMany = () => {
        const added = Array.from({ length: random.below(40) }, (_, i) => summaryOf(`many ${i}`, random))
        for (const summary of added) if (!model.has(summary.id)) model.set(summary.id, summary)
        summaries.addAll(added.map((summary) => ({ ...summary })))
      }
      addMany()
      for (let step = 0; step < 60; step++) {
        // Those that are known stay as they are.
        if (random.below(20) === 0) addMany()
        const id = `id ${random.below(25)}`
        if (random.below(4) === 0) {
          model.delete(id)
          summaries.delete(id)
        } else if (random.below(3) === 0) {
          const change = { lastSeq: step, updatedAt: at(random.below(8)) }
          summaries.advance(id, change)
          const known = model.get(id)
          if (known) model.set(id, { ...known, ...change })
        } else {
          const summary = summaryOf(id, random)
          model.set(id, summary)
          summaries.set(summary)
        }
      }
      for (let i = 0; i < 10; i++) {
        const query = queryOf(random)
        const expected = expectedIds(model.values(), query)
        expect(allPages(summaries, query), `seed ${seed} ${JSON.stringify(query)}`).toEqual(expected)
        const { order: _, limit: __, sort: ___, ...filter } = query
        expect(summaries.count(filter).count).toBe(expected.length)
      }
      for (const id of model.keys()) expect(summaries.get(id)).toEqual(model.get(id))
    }
  })
})
