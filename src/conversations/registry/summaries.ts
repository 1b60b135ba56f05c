/**
 * All conversations in list order, by status and with counts, updated with each change, so that a request needs no
 * sorting or counting.
 */
import type { ConversationCount, CountConversations, ListConversations } from '../../contract/conversation.ts'
import { Status } from '../../contract/events/status.ts'
import { SortedList } from './sorted-list.ts'
import type { Summary } from '../../storage/storage.ts'
import type { IsVisible } from './listing.ts'
import { matchesAll, compareSummaries, countMatching, countValues, listPage } from './listing.ts'

/** One object per conversation for its whole life, so that a change that affects no order is a plain assignment. */
type KeptSummary = { -readonly [Field in keyof Summary]: Summary[Field] }

/** The most that are inserted one by one. */
const FEW = 16

export class Summaries {
  readonly #byId = new Map<string, KeptSummary>()
  #all = new SortedList<KeptSummary>(compareSummaries)
  readonly #byStatus = new Map<Status, SortedList<KeptSummary>>(
    Status.options.map((status) => [status, new SortedList<KeptSummary>(compareSummaries)] as const),
  )

  /** Adds those that are not known yet: many as fast as they can be sorted. */
  addAll(summaries: readonly Summary[]): void {
    const newSummaries = summaries.filter(({ id }) => !this.#byId.has(id))
    if (newSummaries.length <= FEW) return newSummaries.forEach((summary) => this.set(summary))
    this.#all = new SortedList<KeptSummary>(compareSummaries, [...this.#byId.values(), ...newSummaries])
    this.#byId.clear()
    for (const status of this.#byStatus.keys())
      this.#byStatus.set(status, new SortedList<KeptSummary>(compareSummaries))
    for (let place = 0; place < this.#all.length; place++) {
      // oxlint-disable-next-line typescript/no-non-null-assertion -- the index is within bounds
      const summary = this.#all.at(place)!
      this.#byId.set(summary.id, summary)
      this.#of(summary.status).add(summary)
    }
  }

  has(id: string): boolean {
    return this.#byId.has(id)
  }

  get(id: string): Summary | undefined {
    return this.#byId.get(id)
  }

  values(): Iterable<Summary> {
    return this.#byId.values()
  }

  /** Adds the summary, or replaces the one with its id. */
  set(summary: Summary): void {
    const knownSummary = this.#byId.get(summary.id)
    if (knownSummary?.createdAt === summary.createdAt) {
      const isMoved = knownSummary.status !== summary.status
      if (isMoved) this.#of(knownSummary.status).delete(knownSummary)
      Object.assign(knownSummary, summary)
      if (isMoved) this.#of(knownSummary.status).add(knownSummary)
      return
    }
    if (knownSummary) this.delete(knownSummary.id)
    const keptSummary = { ...summary }
    this.#byId.set(keptSummary.id, keptSummary)
    this.#all.add(keptSummary)
    this.#of(keptSummary.status).add(keptSummary)
  }

  /** Records the new end of the log. */
  advance(id: string, { lastSeq, updatedAt }: Pick<Summary, 'lastSeq' | 'updatedAt'>): void {
    const knownSummary = this.#byId.get(id)
    if (knownSummary) Object.assign(knownSummary, { lastSeq, updatedAt })
  }

  delete(id: string): void {
    const knownSummary = this.#byId.get(id)
    if (!knownSummary) return
    this.#byId.delete(id)
    this.#all.delete(knownSummary)
    this.#of(knownSummary.status).delete(knownSummary)
  }

  count({ by = new Set(), ...filter }: CountConversations, isVisible?: IsVisible): ConversationCount {
    const statuses = by.has('status') ? [...(filter.status ?? Status.options)] : []
    const counts = statuses.map(
      (each) => [each, this.#count({ ...filter, status: new Set([each]) }, isVisible)] as const,
    )
    return {
      count: this.#count(filter, isVisible),
      ...(by.has('status') && { by_status: Object.fromEntries(counts.filter(([, each]) => each > 0)) }),
      ...countValues(this.#all, { by, ...filter }, isVisible),
    }
  }

  #count({ status, ...filter }: CountConversations, isVisible?: IsVisible): number {
    const lists = status ? [...status].map((each) => this.#of(each)) : [this.#all]
    const isAll = matchesAll(filter) && !isVisible
    const counts = lists.map((list) => (isAll ? list.length : countMatching(list, filter, isVisible)))
    return counts.reduce((sum, count) => sum + count, 0)
  }

  /** Throws a `Problem` for an invalid `page_id`. */
  page(query: ListConversations, isVisible?: IsVisible): { ids: string[]; nextPageId: string | null } {
    const [first, ...others] = query.status ?? []
    return listPage(first && others.length === 0 ? this.#of(first) : this.#all, query, isVisible)
  }

  #of(status: Status): SortedList<KeptSummary> {
    // oxlint-disable-next-line typescript/no-non-null-assertion -- there is a list for each status
    return this.#byStatus.get(status)!
  }
}
