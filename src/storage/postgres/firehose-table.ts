/**
 * The order of the firehose for instances that share a database: each append adds its rows, so that all of them publish
 * the same order and know the cursors of each other. Reads them, and adds nothing.
 */
import type { FirehoseOrder, OrderedEvent } from '../../events/firehose/firehose-order.ts'
import { requireUntrimmed } from '../../events/firehose/firehose-order.ts'
import type { LogViews } from '../../events/event-store.ts'
import type { PostgresDatabase } from './database.ts'
import { FIREHOSE_STEP } from './fifth-migration.ts'

type FirehoseTableParts = {
  readonly database: PostgresDatabase
  /** Must show all events that are committed: a log that is open in this instance may know of them a moment later. */
  readonly logs: LogViews
  /** Releases what calls the reader of the order when other instances have appended. */
  readonly stopListening: () => Promise<void>
  readonly whenSynced?: (() => Promise<void>) | undefined
}

export class FirehoseTable implements FirehoseOrder {
  readonly epoch: string
  readonly logs: LogViews
  readonly #parts: FirehoseTableParts
  #last = 0
  #trimmed = 0

  static async open(parts: FirehoseTableParts): Promise<FirehoseTable> {
    const [row] = await parts.database.read('select firehose_epoch as epoch from database_identity')
    const table = new FirehoseTable(parts, String(row?.['epoch']))
    await table.sync()
    return table
  }

  private constructor(parts: FirehoseTableParts, epoch: string) {
    this.#parts = parts
    this.logs = parts.logs
    this.epoch = epoch
  }

  get last(): number {
    return this.#last
  }

  get trimmed(): number {
    return this.#trimmed
  }

  add(): Promise<void> {
    return Promise.resolve()
  }

  /** Learns what all instances have appended. */
  async sync(): Promise<void> {
    const [row] = await this.#parts.database.read(SYNC)
    await this.#parts.whenSynced?.()
    this.#last = Math.max(this.#last, Number(row?.['last']))
    this.#trimmed = Number(row?.['trimmed'])
  }

  async read(after: number, limit: number): Promise<OrderedEvent[]> {
    // One more: of the first row, all events may be before the position.
    const rows = await this.#parts.database.read(READ, [after, this.#last, limit + 1])
    this.#trimmed = Number(rows[0]?.['trimmed'])
    requireUntrimmed(after, this.#trimmed)
    const events: OrderedEvent[] = []
    for (const row of rows) {
      if (row['position'] === null) break
      const [first, last] = [Number(row['first_seq']), Number(row['last_seq'])]
      const before = Number(row['position']) - FIREHOSE_STEP + 1 - first
      for (let seq = Math.max(first, after + 1 - before); seq <= last; seq++) {
        if (events.length === limit) return events
        events.push({ position: before + seq, conversationId: String(row['conversation_id']), seq })
      }
    }
    return events
  }

  keepOnly(): Promise<void> {
    return Promise.resolve()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.stopListening()
  }
}

const SYNC = 'select firehose_horizon() as last, firehose_trimmed as trimmed from database_identity'
// One statement, so that nothing is trimmed between the rows and the position; without rows it has the position alone.
const READ = `
  select i.firehose_trimmed as trimmed, f.* from database_identity i left join lateral (
    select position, conversation_id, first_seq, last_seq from firehose
    where position > $1 and position <= $2 order by position limit $3
  ) f on true order by f.position`
