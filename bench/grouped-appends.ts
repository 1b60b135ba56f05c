/** What the storage of a cluster gains when appends that wait share a transaction, compared with one transaction each. */
import { Client } from 'pg'
import { Queue } from '../src/lib/queue.ts'
import type { AppendEntry } from '../src/storage/postgres/append-lanes.ts'
import { AppendLanes } from '../src/storage/postgres/append-lanes.ts'
import { PostgresDatabase } from '../src/storage/postgres/database.ts'
import type { Row } from './table.ts'
import { median } from './table.ts'

const ROUNDS = 5
const WRITERS = 64
const APPENDS = 20
/** The connections of one storage for appends. */
const CONNECTIONS = 2
/** The storages of the side with many connections. */
const MORE = 8
const JSON_CHARS = 600
const RENEW_MS = 1000

type Side = { readonly storages: number; readonly atOnce: number }

/** Needs a database that a server has prepared. All sides write the same events with the same statement. */
export async function benchGroupedAppends(url: string): Promise<Row> {
  const client = new Client({ connectionString: url })
  await client.connect()
  // Of so few at once, each has a connection for itself, and none shares a transaction.
  const alone = { storages: 1, atOnce: CONNECTIONS }
  const sides: Side[] = [{ storages: 1, atOnce: WRITERS }, alone, { ...alone, storages: MORE }]
  const rates = sides.map((): number[] => [])
  try {
    for (let round = 0; round <= ROUNDS; round++)
      for (const [at, side] of sides.entries()) rates[at]!.push(await appendsPerSecond(client, url, side))
  } finally {
    await client.end()
  }
  // The first round warms up.
  const [grouped, few, many] = rates.map((each) => median(each.slice(1))) as [number, number, number]
  const compared = (rate: number, storages: number) =>
    `${(grouped / rate).toFixed(2)} of ${rate.toFixed(0)}/s over ${storages * CONNECTIONS} connections`
  return [
    `several instances: appends of ${WRITERS} conversations, without HTTP, over ${CONNECTIONS} connections`,
    `${grouped.toFixed(0)}/s`,
    `by one transaction each: ${compared(few, 1)}, ${compared(many, MORE)}`,
  ]
}

async function appendsPerSecond(client: Client, url: string, { storages, atOnce }: Side): Promise<number> {
  const query = async (text: string, values: readonly unknown[] = []) =>
    (await client.query<{ id: string; epoch: string }>(text, [...values])).rows
  const [{ id: owner } = { id: '0' }] = await query(BEGIN)
  const conversations = await query(CREATE, [owner, WRITERS])
  const opened = new AsyncDisposableStack()
  // The instances of the benchmark would declare it dead.
  const renewal = setInterval(() => void query(RENEW, [owner]), RENEW_MS)
  try {
    const appendTo = Array.from({ length: storages }, () => {
      const lanes = new AppendLanes(opened.use(new PostgresDatabase({ url, outageMs: 0 })), Number(owner), {})
      const queue = new Queue({ limit: atOnce })
      return (entry: AppendEntry) => queue.run(() => lanes.append(entry))
    })
    const began = performance.now()
    await Promise.all(
      conversations.map(async ({ id, epoch }, writer) => {
        for (let head = 0; head < APPENDS; head++) {
          const { kind } = await appendTo[writer % storages]!(entryOf(id, Number(epoch), head))
          if (kind !== 'stored') throw new Error('an append was not stored')
        }
      }),
    )
    return (WRITERS * APPENDS * 1000) / (performance.now() - began)
  } finally {
    clearInterval(renewal)
    await opened.disposeAsync()
    const ids = [conversations.map(({ id }) => id)]
    for (const table of ['firehose', 'events']) await query(`delete from ${table} where conversation_id = any($1)`, ids)
    await query('delete from conversations where id = any($1)', ids)
    await query('update incarnations set ended_at = now() where id = $1', [owner])
  }
}

function entryOf(id: string, epoch: number, head: number): AppendEntry {
  const event = { seq: head + 1, at: Date.now(), type: 'UserMessage', source: 'user', json: 'x'.repeat(JSON_CHARS) }
  return { id, epoch, head, events: [event], listing: null, isPatient: false, onLimit: () => {} }
}

const BEGIN = `insert into incarnations (host, pid, server_version) values ('bench', 0, 'bench') returning id`
const RENEW = 'update incarnations set counter = counter + 1 where id = $1'
const CREATE = `
  insert into conversations (id, owner) select gen_random_uuid(), $1 from generate_series(1, $2::integer) returning id, epoch`
