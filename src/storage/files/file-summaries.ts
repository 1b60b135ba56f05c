/** Summaries that count as long as the file of the log is the one they were made from, as its stamp tells. */
import { logPathIn } from './log/jsonl-store.ts'
import type { NotedSummaries, Summary, SummaryCache } from '../storage.ts'
import type { LogStamp } from './log-stamp.ts'
import { isSameStamp, stampOf, stampsOf } from './log-stamp.ts'
import type { NotedSummary } from './summary-file.ts'
import { SummaryFile } from './summary-file.ts'

export type FileSummariesOptions = {
  /** Of the file of summaries. */
  readonly path: string
  /** Where the logs are. */
  readonly logs: string
  /** Informed of what keeps summaries from being written; each costs the next start a look at the conversation itself. */
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

  /** Writes what waits. */
  close(): Promise<void> {
    return this.#file.close()
  }

  readonly #logOf = (id: string): string => logPathIn(this.#logs, id)
}

function summaryOf(noted: NotedSummary | undefined, stamp: LogStamp | undefined): Summary | undefined {
  return noted && stamp && isSameStamp(noted.stamp, stamp) ? noted.summary : undefined
}
