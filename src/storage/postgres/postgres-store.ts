/** The logs of all conversations in the database. Owns which log object is the current writer in this instance. */
import { randomUUID } from 'node:crypto'
import type { Event, EventDraft } from '../../contract/events/event.ts'
import { Problem } from '../../contract/problem.ts'
import type { EventStore, LogView, LogViews, StoredLog } from '../../events/event-store.ts'
import { Queue } from '../../lib/queue.ts'
import { withoutUndefined } from '../../lib/without-undefined.ts'
import { serialiseCopy, serialiseDraft, storedFromDraft } from '../shared/stored-event.ts'
import type { EventRow } from './append-lanes.ts'
import { AppendLanes } from './append-lanes.ts'
import type { PostgresDatabase } from './database.ts'
import { takenOver } from './database-errors.ts'
import { isUuid } from './is-uuid.ts'
import type { RowOwnership } from './ownership.ts'
import { ownedByAnother } from './ownership.ts'
import { PostgresLog } from './postgres-log.ts'
import { readPage } from './read-events.ts'
import type { PostgresRow } from './session.ts'
import { writeEvents } from './write-events.ts'
import { viewOf } from '../shared/view-of-writer.ts'

export type PostgresStoreOptions = {
  readonly ownership: RowOwnership
  /** Unix time in milliseconds. */
  readonly now?: () => number
  /** Called after appends. Undefined if no other instance uses the database. */
  readonly onStored?: (() => void) | undefined
  /** Called for each append that was fenced. */
  readonly onFenced?: (() => void) | undefined
}

export class PostgresStore implements EventStore, LogViews {
  readonly #ownership: RowOwnership
  readonly #now: () => number
  readonly #isShared: boolean
  readonly #lanes: AppendLanes
  readonly #current = new Map<string, PostgresLog>()
  // Opening a log takes it over from the previous holder, strictly in turn for each conversation.
  readonly #queue = new Queue({ perKey: 1 })
  #isComparing = false

  constructor({ ownership, now = Date.now, onStored, onFenced }: PostgresStoreOptions) {
    this.#ownership = ownership
    this.#now = now
    this.#isShared = onStored !== undefined
    this.#lanes = new AppendLanes(ownership.database, ownership.incarnation, withoutUndefined({ onStored, onFenced }))
    ownership.database.onBroken = () => {
      // After an outage that is too long for it, it is called again.
      if (!this.#isComparing) this.#compareHeads().catch(() => {})
    }
  }

  get #database(): PostgresDatabase {
    return this.#ownership.database
  }

  create(conversationId: string): Promise<StoredLog> {
    return this.createWith(conversationId, undefined)
  }

  /** Stores a document with this name together with the log. */
  async createWith(conversationId: string, document: { name: string; value: string } | undefined): Promise<StoredLog> {
    return await this.#enqueue(conversationId, async () => {
      const values = [conversationId, this.#ownership.incarnation, randomUUID(), document?.name, document?.value]
      const [row] = await this.#database.write(CREATE, values)
      if (!row) throw exists()
      return this.#take(conversationId, row)
    })
  }

  async copy(
    conversationId: string,
    events: AsyncIterable<Event>,
    ending: () => readonly EventDraft[],
  ): Promise<StoredLog> {
    return await this.#enqueue(conversationId, async () => {
      const [row] = await this.#database.write(BEGIN_COPY, [conversationId, this.#ownership.incarnation])
      if (!row) throw exists()
      const write = (columns: readonly unknown[]) => this.#ownership.write(INSERT, conversationId, columns)
      const { head, lastAt } = await writeEvents(write, this.#copies(conversationId, events, ending))
      const values = [conversationId, this.#ownership.incarnation, randomUUID(), head, lastAt]
      const [createdRow] = await this.#database.write(END_COPY, values)
      if (!createdRow) throw exists()
      return this.#take(conversationId, createdRow)
    })
  }

  async open(conversationId: string): Promise<{ log: StoredLog; repaired: undefined; isReleased: boolean }> {
    return await this.#enqueue(conversationId, async () => {
      await this.#current.get(conversationId)?.retire('fenced')
      const [row] = await this.#database.write(OPEN, [conversationId, this.#ownership.incarnation])
      if (!row) throw await this.#whyNotOpened(conversationId)
      if (Number(row['last_seq'] ?? 0) !== row['head']) throw damagedProblem(row)
      return { log: this.#take(conversationId, row), repaired: undefined, isReleased: row['is_released'] === true }
    })
  }

  async view(conversationId: string): Promise<LogView> {
    return await this.#enqueue(conversationId, async () => {
      const writer = this.#current.get(conversationId)
      // A log that is being closed is there until its last events are written.
      return writer && (await writer.isReadable()) ? viewOf(writer) : await this.viewRow(conversationId)
    })
  }

  async delete(conversationId: string): Promise<void> {
    await this.#enqueue(conversationId, async () => {
      await this.#current.get(conversationId)?.retire('deleted')
      this.#current.delete(conversationId)
      await this.#ownership.call('empty_log', conversationId)
    })
  }

  async #enqueue<T>(conversationId: string, work: () => Promise<T>): Promise<T> {
    requireUuid(conversationId)
    return await this.#queue.run(work, { key: conversationId })
  }

  #take(conversationId: string, row: PostgresRow): PostgresLog {
    const log: PostgresLog = new PostgresLog({
      database: this.#database,
      lanes: this.#lanes,
      conversationId,
      epoch: Number(row['epoch']),
      head: Number(row['head']),
      lastAt: Number(row['last_at']),
      now: this.#now,
      isShared: this.#isShared,
      onClosed: () => this.#current.get(conversationId) === log && this.#current.delete(conversationId),
    })
    this.#current.set(conversationId, log)
    return log
  }

  /** Shows what is committed now, by whichever instance. */
  async viewRow(id: string): Promise<LogView> {
    const [row] = await this.#database.read('select head from conversations where id = $1 and has_log', [id])
    if (!row) throw notFound()
    const head = Number(row['head'])
    return {
      head,
      read: (options) => readPage({ database: this.#database, id, head }, options),
      [Symbol.asyncDispose]: () => Promise.resolve(),
    }
  }

  /** A failover to a standby that was behind loses events that were acknowledged. */
  async #compareHeads(): Promise<void> {
    const logs = Array.from(this.#current.values(), (log) => ({ log, id: log.conversationId, head: log.head }))
    if (logs.length === 0) return
    this.#isComparing = true
    const reading = this.#database.read(HEADS, [logs.map(({ id }) => id)])
    const rows = await reading.finally(() => (this.#isComparing = false))
    const storedHeads = new Map(rows.map((row) => [String(row['id']), Number(row['head'])]))
    for (const { log, id, head } of logs) {
      const storedHead = storedHeads.get(id)
      if (storedHead === undefined || storedHead < head) log.lose(storedHead)
    }
  }

  async #whyNotOpened(id: string): Promise<Problem> {
    const [row] = await this.#database.read(FIND_OWNER, [id, this.#ownership.incarnation])
    if (!row) return notFound()
    return row['is_over'] === true ? takenOver() : ownedByAnother()
  }

  async *#copies(
    conversationId: string,
    events: AsyncIterable<Event>,
    ending: () => readonly EventDraft[],
  ): AsyncGenerator<EventRow, void, void> {
    let [seq, at] = [0, 0]
    for await (const event of events) {
      if (event.seq !== seq + 1) throw new Error(`Event ${event.seq} does not follow event ${seq}.`)
      seq = event.seq
      at = Date.parse(event.timestamp)
      yield { seq, at, type: event.type, source: event.source, json: serialiseCopy(event, conversationId) }
    }
    at = Math.max(at, this.#now())
    for (const draft of ending()) {
      const { type, json } = storedFromDraft(++seq, serialiseDraft(draft, { ms: at, conversationId }))
      yield { seq, at, type, source: draft.source, json }
    }
  }
}

const CREATED = 'returning id, epoch, head, last_at'
// A repeated statement finds its own row.
const CREATE = `
  with made as (
    insert into conversations (id, has_log, owner, created_by) values ($1, true, $2, $3)
    on conflict (id) do update set has_log = true, owner = $2, created_by = $3, epoch = nextval('epochs')
    where not conversations.has_log or (conversations.created_by = $3 and conversations.head = 0)
    ${CREATED}
  ), document as (
    insert into documents (conversation_id, name, value) select id, $4, $5 from made where $4::text is not null
    on conflict (conversation_id, name) do update set value = excluded.value
  )
  select * from made`
const BEGIN_COPY = `
  with made as (
    insert into conversations (id, owner) values ($1, $2)
    on conflict (id) do update set epoch = nextval('epochs')
    where not conversations.has_log and (conversations.owner = $2 or has_ended(conversations.owner))
    returning id
  ), removed as (
    delete from events using made where conversation_id = made.id
  )
  select id from made`
const END_COPY = 'select * from finish_copy($1, $2, $3, $4, $5)'
const INSERT = `
  insert into events (conversation_id, seq, at, type, source, json)
  select $1, e.* from allowed, unnest($3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[]) e
  on conflict do nothing`
// A released one stays so until its first append: nothing has begun.
const OPEN = `
  update conversations c set owner = $2, epoch = nextval('epochs')
  where id = $1 and has_log and not has_ended($2) and (owner is null or owner = $2 or has_ended(owner))
  ${CREATED}, is_released, (select max(seq) from events e where e.conversation_id = c.id) as last_seq`
const HEADS = 'select id, head from conversations where id = any($1::uuid[]) and has_log'
const FIND_OWNER = 'select has_ended($2) as is_over from conversations where id = $1 and has_log'

function requireUuid(conversationId: string): void {
  if (!isUuid(conversationId)) throw notFound()
}

const notFound = (): Problem => new Problem('conversation_not_found', 'No conversation has this id.')

const exists = (): Problem => new Problem('conversation_exists', 'A conversation with this id already exists.')

const damagedProblem = (row: PostgresRow): Problem =>
  new Problem(
    'conversation_damaged',
    `The event log of this conversation is damaged: ${String(row['head'])} events were stored, and the last one in the database is ${String(row['last_seq'])}. Restore a backup of the database.`,
  )
