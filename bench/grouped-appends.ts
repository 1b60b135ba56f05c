/** What the storage of a cluster gains when appends that wait share a transaction, compared with one transaction each. */
import { Client } from 'pg'
import { Queue } from '../src/lib/queue.ts'
import { AppendLanes } from '../src/storage/postgres/append-lanes.ts'
import { PostgresDatabase } from '../src/storage/postgres/database.ts'
import type { Row } from './table.ts'
import { median } from './table.ts'

const ROUNDS = 5
const WRITERS = 64
const APPENDS = 20
/** The lanes have as many connections. */
const CONNECTIONS = 2
const JSON_CHARS = 600

/** Needs a database that a server has prepared. Both sides write the same events with the same statement. */
export async function benchGroupedAppends(url: string): Promise<Row> {
  const client = new Client({ connectionString: url })
  await client.connect()
  const rates: [number[], number[]] = [[], []]
  try {
    for (let round = 0; round <= ROUNDS; round++) {
      rates[0].push(await appendsPerSecond(client, url, WRITERS))
      // Of so few at once, each has a connection for itself, and none shares a transaction.
      rates[1].push(await appendsPerSecond(client, url, CONNECTIONS))
    }
  } finally {
    await client.end()
  }
  // The first round warms up.
  const [grouped, each] = [median(rates[0].slice(1)), median(rates[1].slice(1))]
  return [
    `several instances: appends of ${WRITERS} conversations, without HTTP`,
    `${grouped.toFixed(0)}/s`,
    `${(grouped / each).toFixed(2)} of ${each.toFixed(0)}/s by one transaction each, over ${CONNECTIONS} connections, too`,
  ]
}

async function appendsPerSecond(client: Client, url: string, atOnce: number): Promise<number> {
  const query = async (text: string, values: readonly unknown[] = []) =>
    (await client.query<{ id: string; epoch: string }>(text, [...values])).rows
  const [{ id: owner } = { id: '0' }] = await query(BEGIN)
  const conversations = await query(CREATE, [owner, WRITERS])
  const queue = new Queue({ limit: atOnce })
  try {
    await using database = new PostgresDatabase({ url, outageMs: 0 })
    const lanes = new AppendLanes(database, Number(owner), {})
    const append = (id: string, epoch: string, head: number) => queue.run(() => lanes.append(entryOf(id, epoch, head)))
    const began = performance.now()
    await Promise.all(
      conversations.map(async ({ id, epoch }) => {
        for (let head = 0; head < APPENDS; head++)
          if ((await append(id, epoch, head)).kind !== 'stored') throw new Error('an append was not stored')
      }),
    )
    return (WRITERS * APPENDS * 1000) / (performance.now() - began)
  } finally {
    const ids = [conversations.map(({ id }) => id)]
    for (const table of ['firehose', 'events']) await query(`delete from ${table} where conversation_id = any($1)`, ids)
    await query('delete from conversations where id = any($1)', ids)
    await query('update incarnations set ended_at = now() where id = $1', [owner])
  }
}

function entryOf(id: string, epoch: string, head: number) {
  const event = { seq: head + 1, at: Date.now(), type: 'UserMessage', source: 'user', json: 'x'.repeat(JSON_CHARS) }
  const rest = { events: [event], listing: null, isPatient: false, onLimit: () => {} }
  return { id, epoch: Number(epoch), head, ...rest }
}

const BEGIN = `insert into incarnations (host, pid, server_version) values ('bench', 0, 'bench') returning id`
const CREATE = `
  insert into conversations (id, owner) select gen_random_uuid(), $1 from generate_series(1, $2::integer) returning id, epoch`
