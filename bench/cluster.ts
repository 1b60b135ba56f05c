/**
 * What two instances on one PostgreSQL cost, as ratios to one server on files of the same machine. Needs an empty database in
 * BENCH_DATABASE_URL; without it nothing is measured.
 */
import http from 'node:http'
import { readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { IncomingMessage } from 'node:http'
import { freePort } from '../test/support/free-port.ts'
import { benchMany, benchTakeover, startMs } from './cluster-scale.ts'
import { deliver } from './deltas.ts'
import { benchGroupedAppends } from './grouped-appends.ts'
import type { ModelProcess } from './model-process.ts'
import { startModel, stepTimes } from './model-process.ts'
import { KEY, megabytesOf } from './server-process.ts'
import type { AgentServer } from './subjects.ts'
import { startAgentServer } from './subjects.ts'
import type { Row } from './table.ts'
import { median } from './table.ts'

const ROUNDS = 5
const STEPS = 30
const CREATES = 40
const READS = 100
const WRITERS = 64
const POSTS = 10
const PIECES = 200
const GAP_MS = 5

const agent = new http.Agent({ keepAlive: true, maxSockets: WRITERS })

type Sides = { readonly files: AgentServer; readonly owner: AgentServer; readonly other: AgentServer }

export async function benchCluster(): Promise<Row[]> {
  const url = process.env['BENCH_DATABASE_URL']
  if (url === undefined) return []
  const settings = { OPENHANDS_DATABASE_URL: url, OPENHANDS_CLUSTER_LISTEN: '127.0.0.1:0' }
  await using model = await startModel()
  const emptyMs = await startMs(settings)
  await using files = await startAgentServer(model.url, {}, { port: await freePort() })
  await using owner = await startAgentServer(model.url, settings, { port: await freePort() })
  await using other = await startAgentServer(model.url, settings, { port: await freePort() })
  const sides = { files, owner, other }
  return [
    await steps(sides, model),
    await appends(sides),
    await benchGroupedAppends(url),
    await creates(sides),
    await lists(sides),
    await reads(sides),
    await deltas(sides),
    await memory(sides),
    guard(owner),
    await benchTakeover(url, owner),
    ...(await benchMany(url, settings, emptyMs)),
  ]
}

async function steps({ files, owner }: Sides, model: ModelProcess): Promise<Row> {
  const [own, its] = await alternate(owner, files, async (side) => {
    const id = await side.create()
    await model.exchanges()
    await side.run(id, { steps: STEPS })
    return median(stepTimes(await model.exchanges()))
  })
  return row('a step of the agent', own, its, 'with files')
}

async function appends({ files, owner }: Sides): Promise<Row> {
  const [own, its] = await alternate(owner, files, async (side) => {
    const ids = await Promise.all(Array.from({ length: WRITERS }, () => side.create()))
    const began = performance.now()
    await Promise.all(
      ids.map((id) => each(POSTS, () => send('POST', `${side.url}/conversations/${id}/messages`, POST))),
    )
    return (WRITERS * POSTS * 1000) / (performance.now() - began)
  })
  return [
    `several instances: messages stored in ${WRITERS} conversations at once`,
    `${own.toFixed(0)}/s`,
    `${(own / its).toFixed(2)} of ${its.toFixed(0)}/s with files`,
  ]
}

async function creates({ files, owner }: Sides): Promise<Row> {
  const [own, its] = await alternate(owner, files, async (side) => await each(CREATES, () => side.create()))
  return row('a conversation made, durable', own, its, 'with files')
}

/** The conversations are those of the rounds before. */
async function lists({ files, other }: Sides): Promise<Row> {
  const [own, its] = await alternate(other, files, async (side) =>
    each(READS, () => get(`${side.url}/conversations/summaries?limit=50`)),
  )
  return row(`a page of 50 of some ${CREATES * ROUNDS} conversations of another instance`, own, its, 'with files')
}

async function reads({ owner, other }: Sides): Promise<Row> {
  const id = await owner.create()
  const [own, its] = await alternate(other, owner, async (side) =>
    each(READS, () => get(`${side.url}/conversations/${id}`)),
  )
  return row('a request through another instance', own, its, 'at the owner')
}

async function deltas({ owner, other }: Sides): Promise<Row> {
  const [own, its] = await alternate(other, owner, async ({ subscribe }) =>
    median((await deliver({ ...owner, subscribe }, 1, { pieces: PIECES, gapMs: GAP_MS })).ages),
  )
  return row('a piece of text from the model to a subscriber of another instance', own, its, 'at the owner')
}

/** What a load has left is removed by then. */
const REST_MS = 10_000

async function memory({ files, owner }: Sides): Promise<Row> {
  await sleep(REST_MS)
  const [own, its] = [megabytesOf(owner.pid), megabytesOf(files.pid)]
  return [
    'resident memory of an instance, 10 s later',
    `${own.toFixed(0)} MB`,
    `${(own - its).toFixed(0)} MB more than with files`,
  ]
}

function guard({ pid }: AgentServer): Row {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number)
  const isGuard = (child: number) => readFileSync(`/proc/${child}/cmdline`, 'utf8').includes('agent-server-guard')
  const [found = NaN] = children.filter(isGuard)
  return ['resident memory of its guard', `${megabytesOf(found).toFixed(0)} MB`, '']
}

/** Returns the medians of both, after one round to warm up. */
async function alternate<T>(one: T, two: T, measure: (side: T) => Promise<number>): Promise<[number, number]> {
  const found: [number[], number[]] = [[], []]
  for (let round = 0; round <= ROUNDS; round++) {
    found[0].push(await measure(one))
    found[1].push(await measure(two))
  }
  return [median(found[0].slice(1)), median(found[1].slice(1))]
}

/** Returns the milliseconds that one takes. */
async function each(times: number, work: () => Promise<unknown>): Promise<number> {
  const began = performance.now()
  for (let i = 0; i < times; i++) await work()
  return (performance.now() - began) / times
}

const POST = JSON.stringify({ message: { role: 'user', content: 'Hello' }, run: false })

const get = (url: string) => send('GET', url)

async function send(method: string, url: string, sent = ''): Promise<void> {
  const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
  const request = http.request(url, {
    method,
    agent,
    headers: sent === '' ? { authorization: headers.authorization } : headers,
  })
  request.end(sent)
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  const body = await text(response)
  if (response.statusCode !== 200 && response.statusCode !== 202)
    throw new Error(`${url}: ${response.statusCode} ${body}`)
}

const row = (what: string, own: number, its: number, where: string): Row => [
  `several instances: ${what}`,
  `${own.toFixed(2)} ms`,
  `${(own / its).toFixed(2)} of ${its.toFixed(2)} ms ${where}`,
]
