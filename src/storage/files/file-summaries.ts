/** Caches summaries that are valid while the log file is unchanged, according to its stamp. */
import { logPathIn } from './log/jsonl-store.ts'
import type { NotedSummaries, Summary, SummaryCache } from '../storage.ts'
import type { LogStamp } from './log-stamp.ts'
import { isSameStamp, stampOf, stampsOf } from './log-stamp.ts'
import type { NotedSummary } from './summary-file.ts'
import { SummaryFile } from './summary-file.ts'

export type FileSummariesOptions = {
  /** Path of the summaries file. */
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
  readonly #file: SummaryFile
  readonly #logs: string

  constructor({ path, logs, onFault }: FileSummariesOptions) {
    this.#file = new SummaryFile({ path, onFault })
    this.#logs = logs
  }

  async read(): Promise<NotedSummaries> {
    const noted = await this.#file.read()
    return {
      current: async (ids, signal) => {
        const stamps = await stampsOf(ids.map(this.#logOf), signal)
        return ids.map((id, at) => summaryOf(noted.get(id), stamps[at]))
      },
    }
  }

  noteFor(id: string): (summary: Summary) => void {
    const stamp = stampOf(this.#logOf(id))
    return (summary) => stamp && this.#file.note({ summary, stamp })
  }

  forget(id: string): Promise<void> {
    return this.#file.forget(id)
  }

  tidy(isThere: (id: string) => boolean): Promise<void> {
    return this.#file.tidy(isThere)
  }

  /** Writes pending summaries. */
  close(): Promise<void> {
    return this.#file.close()
  }

  readonly #logOf = (id: string): string => logPathIn(this.#logs, id)
}

function summaryOf(noted: NotedSummary | undefined, stamp: LogStamp | undefined): Summary | undefined {
  return noted && stamp && isSameStamp(noted.stamp, stamp) ? noted.summary : undefined
}
