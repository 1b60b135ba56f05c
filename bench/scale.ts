/** What costs that could grow with the number of conversations are at a hundred thousand of them. */
import { mkdtemp, rm } from 'node:fs/promises'
import http from 'node:http'
import type { IncomingMessage } from 'node:http'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fillWithConversations } from './many-conversations.ts'
import { KEY, URL, startServerProcess } from './server-process.ts'
import type { Row } from './table.ts'
import { median } from './table.ts'

const CONVERSATIONS = 100_000
const OPENS = 10_000
const OPENED_AT_A_TIME = 16
const REQUESTS = 51

export async function benchScale(): Promise<Row[]> {
  const home = await mkdtemp(join(tmpdir(), 'bench-scale-'))
  try {
    await fillWithConversations(home, CONVERSATIONS)
    const first = await startServerProcess(home)
    // It writes down what it has read.
    await first.kill('SIGTERM')
    const { ms, readyMs, megabytes, kill } = await startServerProcess(home)
    const rows = [
      seconds('start, until it listens', ms, readyMs),
      seconds('start, until it is ready', readyMs, 1500),
      seconds('the same without a file of summaries', first.readyMs, 1500),
      ...(await benchRequests()),
    ]
    await kill()
    return [
      ...rows.map(([what, ...rest]): Row => [`${CONVERSATIONS.toLocaleString('en')} conversations: ${what}`, ...rest]),
      ['resident memory then', `${megabytes.toFixed(0)} MB`, ''],
    ]
  } finally {
    await rm(home, { recursive: true, force: true })
  }
}

async function benchRequests(): Promise<Row[]> {
  const read = (path: string) => () => request('GET', path)
  const create = (headers: Record<string, string>) =>
    request('POST', '/conversations', { llm_config: { model: 'none' } }, headers)
  const firehose = await timed(firstOfFirehose)
  return [
    milliseconds('a page of a list', await medianOf(read('/conversations')), 2),
    milliseconds('a page that nobody has seen before', await medianOf(createPager('/conversations?order=asc')), 2),
    milliseconds('of one status, oldest first', await medianOf(read('/conversations?status=idle&order=asc')), 2),
    milliseconds('of a status that none has', await medianOf(read('/conversations?status=paused')), 2),
    milliseconds('`/conversations/count?status=idle`', await medianOf(read('/conversations/count?status=idle')), 2),
    milliseconds('`/metrics`', await medianOf(read('/metrics')), 10),
    milliseconds(
      'a create with an `Idempotency-Key`',
      await medianOf(() => create({ 'idempotency-key': crypto.randomUUID() })),
      await medianOf(() => create({})),
    ),
    seconds('the first reader of the firehose', firehose, 1000),
    seconds(`${OPENS.toLocaleString('en')} opened`, await openMany(), 10_000),
  ]
}

/** Asks for the next page each time. */
function createPager(path: string): () => Promise<unknown> {
  let from = ''
  return async () => {
    const page = JSON.parse(await request('GET', path + from)) as { next_page_id: string }
    from = `&page_id=${page.next_page_id}`
  }
}

/** Resolves when the stream has begun: it then knows of every event there is. */
async function firstOfFirehose(): Promise<void> {
  const stream = http.get(`${URL}/firehose`, { agent: false, headers: { ...AUTH, accept: 'text/event-stream' } })
  await once(stream, 'response')
  stream.destroy()
}

async function openMany(): Promise<number> {
  const ids: string[] = []
  for (let page = ''; ids.length < OPENS;) {
    const { items, next_page_id } = JSON.parse(await request('GET', `/conversations?order=asc&limit=1000${page}`)) as {
      items: { id: string }[]
      next_page_id: string
    }
    ids.push(...items.map(({ id }) => id))
    page = `&page_id=${next_page_id}`
  }
  return await timed(async () => {
    const waiting = ids.slice(0, OPENS)
    const work = async () => {
      for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) await request('GET', `/conversations/${id}`)
    }
    await Promise.all(Array.from({ length: OPENED_AT_A_TIME }, work))
  })
}

const agent = new http.Agent({ keepAlive: true })
const AUTH = { authorization: `Bearer ${KEY}` }

async function request(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const sent = http.request(URL + path, {
    method,
    agent,
    headers: { ...AUTH, ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) },
  })
  sent.end(body === undefined ? undefined : JSON.stringify(body))
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  let text = ''
  for await (const piece of response.setEncoding('utf8')) text += piece as string
  if (response.statusCode! >= 400) throw new Error(`${path}: ${response.statusCode} ${text}`)
  return text
}

async function medianOf(work: () => Promise<unknown>): Promise<number> {
  const times: number[] = []
  for (let i = 0; i < REQUESTS; i++) times.push(await timed(work))
  return median(times)
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now()
  await work()
  return performance.now() - began
}

const milliseconds = (what: string, ms: number, allowed: number): Row => [
  what,
  `${ms.toFixed(2)} ms`,
  `${(ms / allowed).toFixed(2)} of ${allowed.toFixed(allowed < 10 ? 1 : 0)} ms`,
]

const seconds = (what: string, ms: number, allowed: number): Row => [
  what,
  `${(ms / 1000).toFixed(2)} s`,
  `${(ms / allowed).toFixed(2)} of ${(allowed / 1000).toFixed(2)} s`,
]
