/** What many conversations on one database cost: a start, a page of a list, and their takeover after `kill -9` of their owner. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { freePort } from '../test/support/free-port.ts'
import { KEY, startServerProcess } from './server-process.ts'
import type { AgentServer } from './subjects.ts'
import type { Row } from './table.ts'
import { median } from './table.ts'

const CONVERSATIONS = 100_000
const STARTS = 3
const PAGES = 51
const ACTIVE = 1000
const POLL_MS = 20

type Settings = Readonly<Record<string, string>>

/** The database has no conversations yet. */
export async function startMs(settings: Settings): Promise<number> {
  const all: number[] = []
  for (let start = 0; start < STARTS; start++) all.push(await withStarted(settings, async ({ readyMs }) => readyMs))
  return median(all)
}

/** `emptyMs` is what a start took without conversations. Leaves the database with many, at rest. */
export async function benchMany(url: string, settings: Settings, emptyMs: number): Promise<Row[]> {
  await withStarted(settings, async (server) => {
    const body = JSON.stringify({ llm_config: { model: 'none' } })
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
    await fetch(`${server.url}/conversations`, { method: 'POST', headers, body })
  })
  await query(url, MULTIPLY, [CONVERSATIONS])
  await query(url, 'analyze')
  const many = CONVERSATIONS.toLocaleString('en')
  const ms = await startMs(settings)
  const page = await withStarted(settings, async (server) => {
    const times: number[] = []
    for (let asked = 0; asked < PAGES; asked++) {
      const began = performance.now()
      const response = await fetch(`${server.url}/conversations`, { headers: { authorization: `Bearer ${KEY}` } })
      await response.text()
      times.push(performance.now() - began)
    }
    return median(times)
  })
  return [
    [
      `several instances: start with ${many} conversations`,
      `${ms.toFixed(0)} ms`,
      `${(ms / emptyMs).toFixed(2)} of ${emptyMs.toFixed(0)} ms without any`,
    ],
    [`several instances: a page of a list of ${many}`, `${page.toFixed(2)} ms`, ''],
  ]
}

/** Ends the owner. */
export async function benchTakeover(url: string, owner: AgentServer): Promise<Row> {
  const [{ id } = {}] = await query(url, 'select id from incarnations where pid = $1 order by id desc limit 1', [
    owner.pid,
  ])
  const ownedCount = 'select count(*)::int as count from conversations where owner = $1'
  for (let count = Number((await query(url, ownedCount, [id]))[0]?.['count']); count < ACTIVE; count++)
    await owner.create()
  const mark = `insert into marks select 'active', id from conversations where owner = $1 limit $2 on conflict do nothing`
  await query(url, mark, [id, ACTIVE])
  const left = `select count(*)::int as count from conversations c join marks m on m.conversation_id = c.id where m.kind = 'active' and c.owner = $1`
  const client = new Client({ connectionString: url })
  await client.connect()
  const count = async () => Number((await client.query<{ count: number }>(left, [id])).rows[0]?.count)
  const all = await count()
  process.kill(owner.pid, 'SIGKILL')
  const began = performance.now()
  let first: number | undefined
  for (let now = all; now > 0; now = await count()) {
    if (now < all) first ??= performance.now() - began
    await sleep(POLL_MS)
  }
  await client.end()
  const last = performance.now() - began
  return [
    `several instances: takeover of ${all} active conversations after \`kill -9\``,
    `${((first ?? last) / 1000).toFixed(1)} s`,
    `all after ${(last / 1000).toFixed(1)} s; the lease ends after 10 s`,
  ]
}

async function withStarted<T>(
  settings: Settings,
  use: (server: { url: string; readyMs: number }) => Promise<T>,
): Promise<T> {
  const home = await mkdtemp(join(tmpdir(), 'bench-instance-'))
  const server = await startServerProcess(home, { ...settings }, { port: await freePort() })
  try {
    return await use(server)
  } finally {
    await server.kill('SIGTERM')
    await rm(home, { recursive: true, force: true, maxRetries: 3 })
  }
}

async function query(url: string, text: string, values: readonly unknown[] = []): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(text, [...values])).rows
  } finally {
    await client.end()
  }
}

/** Copies the newest conversation, with its summary: a start reads the logs of those that have none. */
const MULTIPLY = `
  with former as (select * from conversations where has_log order by created_at desc limit 1),
    made as (
      insert into conversations (id, created_at, has_log, owner, head, last_at, is_released, listed, listed_seq)
      select gen_random_uuid(), created_at - n * interval '1 second', true, null, head, last_at, true, listed, listed_seq
      from former, generate_series(1, $1::bigint) n
      returning id
    ), summarised as (
      insert into summaries
      select made.id, s.last_seq, s.format, replace(s.value, former.id::text, made.id::text)
      from made, former join summaries s on s.conversation_id = former.id
    )
  insert into events (conversation_id, seq, at, type, source, json)
  select made.id, e.seq, e.at, e.type, e.source, replace(e.json, former.id::text, made.id::text)
  from made, former join events e on e.conversation_id = former.id`
