/**
 * The appends of all conversations: what waits while two statements are in progress goes into the next one. When the
 * connection of one breaks, its outcome is decided and not looked up: the server may execute the statement later.
 */
import { Problem } from '../../contract/problem.ts'
import type { PostgresDatabase, Outage } from './database.ts'
import { LostStatement, takenOver, toProblem } from './database-errors.ts'
import type { PostgresRow } from './session.ts'

export type EventRow = {
  readonly seq: number
  /** Unix time in milliseconds. */
  readonly at: number
  readonly type: string
  readonly source: string
  readonly json: string
}

/** The events of one conversation, which has one entry at a time. */
export type AppendEntry = {
  readonly id: string
  /** The epoch and head that its row must have. */
  readonly epoch: number
  readonly head: number
  /** The events, at least one. */
  readonly events: readonly EventRow[]
  /** What lists show after them: null if that has not changed, '' if it is not known. Undefined if no other instance reads it. */
  readonly listing: string | null | undefined
  /** True if it waits for the end of an outage, however long; false if it fails after the limit. */
  readonly isPatient: boolean
  /** Called, maybe often, when it still waits after the limit: with the `Problem` for what waits behind it. */
  readonly onLimit: (problem: unknown) => void
}

export type AppendResult =
  /** `epoch`: the one of the next entry. */
  | { readonly kind: 'stored'; readonly epoch: number }
  /** Another owner has the conversation. */
  | { readonly kind: 'fenced' }
  /** The row of this owner has another head: the database has lost events, or was changed by hand. */
  | { readonly kind: 'differs'; readonly head: number | undefined }

type Waiting = {
  entry: AppendEntry
  readonly outage: Outage
  readonly resolve: (result: AppendResult) => void
  readonly reject: (error: unknown) => void
}

const LANES = 2
/** A statement stops growing at this size, in characters. */
const MAX_STATEMENT_CHARS = 8 * 1024 * 1024

export class AppendLanes {
  readonly #database: PostgresDatabase
  /** The incarnation of this instance. */
  readonly #owner: number
  readonly #onStored: () => void
  readonly #onFenced: () => void
  #waiting: Waiting[] = []
  #busy = 0

  /** `onStored` is called after each statement that has stored events, `onFenced` for each append that was fenced. */
  constructor(
    database: PostgresDatabase,
    owner: number,
    { onStored = () => {}, onFenced = () => {} }: { readonly onStored?: () => void; readonly onFenced?: () => void },
  ) {
    this.#database = database
    this.#owner = owner
    this.#onStored = onStored
    this.#onFenced = onFenced
  }

  /**
   * Resolves when the events are durable, or certainly not stored. While the outcome is unknown, it waits for the database,
   * however long. Rejects with a `Problem`: `storage_failed` if the outcome is still unknown when the storage is closed;
   * any other means that nothing was stored.
   */
  append(entry: AppendEntry): Promise<AppendResult> {
    return new Promise((settle, reject) => {
      const resolve = (result: AppendResult) => {
        if (result.kind === 'fenced') this.#onFenced()
        settle(result)
      }
      this.#waiting.push({ entry, outage: this.#database.outage(), resolve, reject })
      if (this.#busy < LANES) void this.#run()
    })
  }

  async #run(): Promise<void> {
    this.#busy += 1
    while (this.#waiting.length > 0) await this.#store(this.#takeGroup())
    this.#busy -= 1
  }

  #takeGroup(): Waiting[] {
    let [chars, count] = [0, 0]
    for (const { entry } of this.#waiting) {
      chars += entry.events.reduce((sum, { json }) => sum + json.length, 0)
      if (count > 0 && chars > MAX_STATEMENT_CHARS) break
      count += 1
    }
    return this.#waiting.splice(0, count)
  }

  async #store(group: Waiting[]): Promise<void> {
    try {
      const rows = await this.#database.runOnce(APPEND, valuesOf(this.#owner, group), 'append')
      if (rows.some((row) => row['is_stored'] === true)) this.#onStored()
      for (const [i, { entry, resolve, reject }] of group.entries())
        if (this.#isTakenOver(entry, rows[i])) reject(takenOver())
        else resolve(this.#resultOf(entry, rows[i]))
    } catch (error) {
      // This is not done in this lane: other conversations would wait for as long.
      if (error instanceof LostStatement) void this.#decideAndContinue(group, error)
      else await this.#tryAgain(group, error)
    }
  }

  /** Nothing of the group was stored. */
  async #tryAgain(group: readonly Waiting[], error: unknown): Promise<void> {
    const again = await Promise.all(
      group.map(async (one) => {
        try {
          await one.outage.wait(error, one.entry.isPatient ? one.entry.onLimit : undefined)
          return [one]
        } catch (problem) {
          one.reject(problem)
          return []
        }
      }),
    )
    this.#waiting.unshift(...again.flat())
  }

  async #decideAndContinue(group: readonly Waiting[], lostStatement: LostStatement): Promise<void> {
    await this.#tryAgain(await this.#decide(group, lostStatement), lostStatement)
    if (this.#waiting.length > 0 && this.#busy < LANES) await this.#run()
  }

  /** Settles the appends that are stored, or cannot be any more. Returns the others, with their new epoch. */
  async #decide(group: readonly Waiting[], cause: unknown): Promise<Waiting[]> {
    const outage = this.#database.outage()
    const onLimit = (problem: unknown) => group.forEach(({ entry }) => entry.onLimit(problem))
    for (;;) {
      try {
        const rows = await this.#database.runOnce(DECIDE, [this.#owner, group.map(({ entry }) => entry.id)], 'append')
        const byId = new Map(rows.map((row) => [row['id'], row]))
        return group.filter((one) => this.#isOpen(one, byId.get(one.entry.id)))
      } catch (error) {
        const problem = await outage.wait(error, onLimit).catch(toProblem)
        if (problem === undefined) continue
        for (const { reject } of group) reject(uncertain(cause))
        return []
      }
    }
  }

  #isOpen(one: Waiting, row: PostgresRow | undefined): boolean {
    const { entry, resolve } = one
    const [epoch, head] = [Number(row?.['epoch_now']), Number(row?.['head_now'])]
    if (!row) resolve({ kind: 'fenced' })
    else if (head === entry.head + entry.events.length) resolve({ kind: 'stored', epoch })
    else if (head !== entry.head) resolve({ kind: 'differs', head })
    else {
      one.entry = { ...entry, epoch }
      return true
    }
    return false
  }

  #resultOf({ epoch }: AppendEntry, row: PostgresRow | undefined): AppendResult {
    if (row?.['is_stored'] === true) return { kind: 'stored', epoch }
    if (typeof row?.['head_now'] !== 'number') return { kind: 'differs', head: undefined }
    if (row['owner_now'] !== this.#owner) return { kind: 'fenced' }
    // A failover to another server can bring back an older epoch.
    return Number(row['epoch_now']) > epoch ? { kind: 'fenced' } : { kind: 'differs', head: row['head_now'] }
  }

  /** Returns true if only the end of this incarnation explains the refusal. */
  #isTakenOver({ epoch, head }: AppendEntry, row: PostgresRow | undefined): boolean {
    if (row?.['is_stored'] === true || typeof row?.['head_now'] !== 'number') return false
    return row['owner_now'] === this.#owner && row['epoch_now'] === epoch && row['head_now'] === head
  }
}

const APPEND = 'select * from append_events($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)'
const DECIDE = 'select * from decide_appends($1, $2)'

function valuesOf(owner: number, group: readonly Waiting[]): unknown[] {
  const entries = group.map(({ entry }) => entry)
  const events = entries.flatMap(({ events }, i) => events.map((event) => ({ entry: i + 1, ...event })))
  return [
    owner,
    entries.map(({ id }) => id),
    entries.map(({ epoch }) => epoch),
    entries.map(({ head }) => head),
    entries.map((entry) => entry.events.length),
    entries.map((entry) => entry.events.at(-1)?.at),
    events.map(({ entry }) => entry),
    events.map(({ seq }) => seq),
    events.map(({ at }) => at),
    events.map(({ type }) => type),
    events.map(({ source }) => source),
    events.map(({ json }) => json),
    entries.some(({ listing }) => listing !== undefined) ? entries.map(({ listing }) => listing) : null,
  ]
}

const uncertain = (cause: unknown): Problem =>
  new Problem(
    'storage_failed',
    'The connection to the database broke and was not restored before the server stopped: it is uncertain which events were stored last. The conversation must be reopened.',
    { cause },
  )
