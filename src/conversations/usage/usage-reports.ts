/**
 * Sums what answers took. Nothing is counted while agents work: a report first counts what the logs have that the table does not,
 * in the conversations that the reader may see.
 */
import { Problem } from '../../contract/problem.ts'
import type { GetUsage, UsageAmounts, UsageReport, UsageRow } from '../../contract/usage.ts'
import { mapBounded } from '../../lib/map-bounded.ts'
import { Queue } from '../../lib/queue.ts'
import type { Storage, Summary } from '../../storage/storage.ts'
import type { CountedConversation, UsageQuery, UsageSum } from '../../storage/usage.ts'
import type { KnownConversations } from '../registry/known-conversations.ts'
import type { IsVisible } from '../registry/listing.ts'
import { countAnswers } from './count-answers.ts'
import { bucketEdges, isoOf } from './usage-buckets.ts'

/** Logs that are read at the same time. */
const CONCURRENCY = 8
/** What is stored together: as many conversations, or a little more than as many answers. */
const BATCH = { conversations: 256, answers: 2000 }

/** The end of a report without `to`: answers of this millisecond count, and those of a clock that is ahead of this one. */
const OPEN_END = Number.MAX_SAFE_INTEGER

export type UsageReportsDeps = {
  readonly storage: Pick<Storage, 'usage' | 'view'>
  readonly registry: Pick<KnownConversations, 'all' | 'get' | 'upToDate'>
}

export class UsageReports {
  readonly #deps: UsageReportsDeps
  /**
   * The event through which each conversation is counted; undefined until the table was read, and after it has failed.
   */
  #counted: Map<string, number> | undefined
  /** Counts one after the other: who waits finds it done. */
  readonly #queue = new Queue({ perKey: 1 })

  constructor(deps: UsageReportsDeps) {
    this.#deps = deps
  }

  /** `only`: what a limited key sees. Throws a `Problem` for a wrong time. */
  async report(query: GetUsage, visible: Visible, signal: AbortSignal): Promise<UsageReport> {
    return await this.#report(query, visible, signal).catch(async (error: unknown) => {
      if (signal.aborted || error instanceof Problem) throw error
      // A damaged table has been removed: it is counted from the start.
      this.#counted = undefined
      return await this.#report(query, visible, signal)
    })
  }

  async #report(
    query: GetUsage,
    { only: givenFilter = {}, hasProfiles, isVisible = () => true }: Visible,
    signal: AbortSignal,
  ): Promise<UsageReport> {
    await this.#deps.registry.upToDate()
    const edges = bucketEdges(query, Date.now())
    const from = edges[0] ?? 0
    await this.#countSince(from, isVisible, signal)
    const { usage } = this.#deps.storage
    // The table does not know profiles.
    const only = hasProfiles ? { ...givenFilter, conversations: this.#idsOf(isVisible) } : givenFilter
    const until = query.to === undefined ? OPEN_END : (edges.at(-1) ?? 0)
    const [total] = await usage.sum({ edges: [from, until], by: undefined, only, limit: 1 })
    const rows = await usage.sum({ edges: [...edges.slice(0, -1), until], by: query.by, only, limit: query.limit })
    const items = rows.map((row) => this.#rowOf(row, edges, { by: query.by, isVisible }))
    return { from: isoOf(from), to: isoOf(edges.at(-1) ?? 0), total: amountsOf(total), items }
  }

  /** Counts what is about to be deleted: what it cost stays known. */
  async countLast(summary: Summary): Promise<void> {
    await this.#queue.run(async () => await this.#count([summary], new AbortController().signal))
  }

  #idsOf(isVisible: IsVisible): string[] {
    return [...this.#deps.registry.all()].filter(isVisible).map(({ id }) => id)
  }

  #rowOf(
    { bucket, group, ...sum }: UsageSum,
    edges: readonly number[],
    { by, isVisible }: Pick<GetUsage, 'by'> & { readonly isVisible: IsVisible },
  ): UsageRow {
    const amounts = { start: isoOf(edges[bucket] ?? 0), ...amountsOf(sum) }
    if (by === undefined) return amounts
    if (group === undefined) return { ...amounts, rest: true }
    const knownSummary = by === 'conversation' ? this.#deps.registry.get(group) : undefined
    const title = knownSummary && isVisible(knownSummary) ? (knownSummary.title ?? knownSummary.preview) : undefined
    return { ...amounts, group, ...(title && { title }) }
  }

  async #countSince(from: number, isVisible: IsVisible, signal: AbortSignal): Promise<void> {
    const count = async () => {
      const all = [...this.#deps.registry.all()]
      await this.#count(
        all.filter((one) => one.updatedAt >= from && isVisible(one)),
        signal,
      )
    }
    await this.#queue.run(count, { signal })
  }

  async #count(summaries: readonly Summary[], signal: AbortSignal): Promise<void> {
    try {
      const countedHeads = (this.#counted ??= new Map(await this.#deps.storage.usage.counted()))
      const grown = summaries.filter(({ id, lastSeq }) => lastSeq > (countedHeads.get(id) ?? 0))
      let batch: CountedConversation[] = []
      const store = async () => {
        const storedBatch = batch
        batch = []
        if (storedBatch.length > 0) await this.#deps.storage.usage.add(storedBatch)
        for (const { id, throughSeq } of storedBatch) countedHeads.set(id, throughSeq)
      }
      await mapBounded(grown, CONCURRENCY, async (summary) => {
        signal.throwIfAborted()
        const one = await countAnswers(this.#deps.storage, summary, countedHeads.get(summary.id) ?? 0)
        if (one) batch.push(one)
        const answers = batch.reduce((sum, each) => sum + each.answers.length, 0)
        if (batch.length >= BATCH.conversations || answers >= BATCH.answers) await store()
      })
      await store()
    } catch (error) {
      this.#counted = undefined
      throw error
    }
  }
}

type Visible = {
  readonly only?: UsageQuery['only'] | undefined
  /** A key is limited to profiles, too. */
  readonly hasProfiles?: boolean | undefined
  readonly isVisible?: IsVisible | undefined
}

const amountsOf = (sum: Omit<UsageSum, 'bucket' | 'group'> | undefined): UsageAmounts => ({
  answers: sum?.answers ?? 0,
  input_tokens: sum?.inputTokens ?? 0,
  output_tokens: sum?.outputTokens ?? 0,
  cached_tokens: sum?.cachedTokens ?? 0,
  cache_write_tokens: sum?.cacheWriteTokens ?? 0,
  cost_usd: sum?.costUsd ?? 0,
  unpriced: sum?.unpriced ?? 0,
})
