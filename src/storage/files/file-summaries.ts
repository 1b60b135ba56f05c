/** Caches summaries that are valid while the log file is unchanged, according to its stamp. */
import { logPathIn } from './log/jsonl-store.ts'
import type { NotedSummaries, Summary, SummaryCache } from '../storage.ts'
import type { LogStamp } from './log-stamp.ts'
import { isSameStamp, stampOf, stampsOf } from './log-stamp.ts'
import type { NotedSummary } from './summary-table.ts'
import { SummaryTable } from './summary-table.ts'

export type FileSummariesOptions = {
  /** Path of the database. */
  readonly path: string
  /** Directory of the logs. */
  readonly logs: string
  /**
   * Called with errors that prevent summaries from being written; for each, the next start reads the conversation
   * itself.
   */
  readonly onFault: (error: unknown) => void
}

export class FileSummaries implements SummaryCache {
  readonly #table: SummaryTable
  readonly #logs: string

  constructor({ path, logs, onFault }: FileSummariesOptions) {
    this.#table = new SummaryTable({ path, onFault })
    this.#logs = logs
  }

  async read(): Promise<NotedSummaries> {
    const notedSummaries = await this.#table.read()
    return {
      current: async (ids, signal) => {
        const stamps = await stampsOf(ids.map(this.#logOf), signal)
        return ids.map((id, at) => summaryOf(notedSummaries.get(id), stamps[at]))
      },
      last: (id) => notedSummaries.get(id)?.summary,
    }
  }

  noteFor(id: string): (summary: Summary) => void {
    const stamp = stampOf(this.#logOf(id))
    return (summary) => stamp && this.#table.note({ summary, stamp })
  }

  forget(id: string): Promise<void> {
    return this.#table.forget(id)
  }

  tidy(isThere: (id: string) => boolean): Promise<void> {
    return this.#table.tidy(isThere)
  }

  /** Writes pending summaries. */
  close(): Promise<void> {
    return this.#table.close()
  }

  /** Closes the database without writing what is pending. */
  release(): void {
    this.#table.release()
  }

  readonly #logOf = (id: string): string => logPathIn(this.#logs, id)
}

function summaryOf(notedSummary: NotedSummary | undefined, stamp: LogStamp | undefined): Summary | undefined {
  return notedSummary && stamp && isSameStamp(notedSummary.stamp, stamp) ? notedSummary.summary : undefined
}
