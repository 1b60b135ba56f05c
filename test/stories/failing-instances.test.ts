/**
 * Three instances on one database at random moments: killed, stopped, restarted, cut off from it or from each other, in one
 * direction or both, or slowly connected; the database restarts or crashes. Clients go on. What was reported to them is compared
 * with the logs.
 */
import { mkdir, mkdtemp, chmod, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Event } from '../../src/contract/events/event.ts'
import type { PostedMessage } from '../../src/contract/run.ts'
import { bash } from '../support/agent.ts'
import type { Instance } from '../support/instance-faults.ts'
import { faultsOf, revive, startInstances } from '../support/instance-faults.ts'
import { brokenRules } from '../support/log-rules.ts'
import { PATIENCE_MS, effort } from '../support/patience.ts'
import { startPostgres } from '../support/postgres.ts'
import { createRandom } from '../support/random.ts'
import type { Answer, TestServer } from '../support/server.ts'
import { subscribe } from '../support/stream.ts'
import { takeTime } from '../support/take-time.ts'
import { until } from '../support/until.ts'

const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000)
const FAULTS = Number(process.env['FAULTS'] ?? effort(4, 60))
const CONVERSATIONS = 4
/** How long a client waits for an answer. */
const ANSWER_MS = 2000

type Client = {
  readonly id: string
  /** The texts of its messages, with what was reported of each. */
  readonly acknowledged: { readonly text: string; readonly reported: PostedMessage }[]
  readonly received: number[]
}

const script = {
  replies: [{ turns: [bash('echo line >> lines.txt; sleep 0.05'), bash('wc -l lines.txt'), { text: 'Done.' }] }],
}

test(
  `${FAULTS} faults of three instances, seed ${SEED}: nothing acknowledged is lost or twice, and readers get each event once`,
  { timeout: 2 * PATIENCE_MS + FAULTS * 60_000 },
  async () => {
    const random = createRandom(SEED)
    await using opened = new AsyncDisposableStack()
    const place = await mkdtemp(join(tmpdir(), 'failing-instances-'))
    opened.defer(() => rm(place, { recursive: true, force: true, maxRetries: 3 }))
    await chmod(place, 0o711)
    await mkdir(join(place, 'postgres'))
    const postgres = opened.use(await startPostgres(join(place, 'postgres')))
    const database = await postgres.createDatabase()
    const { stage, instances } = await startInstances(3, { script, database, place }, opened)
    const clients: Client[] = []
    for (let count = 0; count < CONVERSATIONS; count++)
      clients.push({ id: await stage.create({ resume_on_start: true }), acknowledged: [], received: [] })

    const over = new AbortController()
    const count = () => clients.reduce((sum, { acknowledged }) => sum + acknowledged.length, 0)
    const progress = async () => {
      const enough = count() + 1 + random.below(4)
      await until('progress of the clients', async () => over.signal.aborted || count() >= enough)
      over.signal.throwIfAborted()
    }
    const anywhere = () => random.pick(instances).server
    const reading = new AbortController()
    const readers = Promise.all(clients.map((client) => read(client, anywhere, reading.signal)))
    const writers = Promise.all(clients.map((client) => write(client, anywhere, over.signal)))
    for (const each of [readers, writers]) each.catch((error: unknown) => over.abort(error))
    const faults = faultsOf({ postgres, database, random, progress })
    const done: string[] = []
    for (let fault = 0; fault < FAULTS; fault++) {
      await progress()
      const [name, happen] = random.pick(faults)
      done.push(name)
      // The last fault may have been longer than the TTL.
      for (const each of instances) await revive(database, each)
      await happen(random.pick(instances)).catch((cause: unknown) => {
        throw new Error(`after ${done.join(', ')}`, { cause })
      })
    }
    for (const instance of instances) await revive(database, instance)
    over.abort()
    await writers
    for (const client of clients) await untilAtRest(client.id, anywhere)
    reading.abort()
    await readers
    for (const client of clients) await check(client, instances, done.join(', '))
  },
)

/** Posts messages one after the other, each until it is accepted: the same key makes all attempts the same message. */
async function write({ id, acknowledged }: Client, anywhere: () => TestServer, over: AbortSignal): Promise<void> {
  for (let number = 0; !over.aborted; number++) {
    const content = `message-${number}-of-${id}`
    await until('an accepted message', async () => {
      const headers = { 'idempotency-key': content }
      const body = { message: { role: 'user', content }, run: true }
      const answer = await ask(anywhere(), 'POST', `/conversations/${id}/messages`, body, headers)
      if (answer && ![202, 409, 503].includes(answer.status)) throw new Error(JSON.stringify(answer))
      if (answer?.status === 202) acknowledged.push({ text: content, reported: answer.body as PostedMessage })
      return over.aborted || answer?.status === 202
    })
    await until('the end of the run', async () => over.aborted || (await statusOf(id, anywhere)) !== 'running')
  }
}

/** Follows the events, and connects to any instance again where it was cut off. */
async function read({ id, received }: Client, anywhere: () => TestServer, over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    const path = `/conversations/${id}/events/stream?after_seq=${received.at(-1) ?? 0}`
    const stream = await subscribe(anywhere().url, path).catch(() => undefined)
    if (!stream) continue
    const close = () => stream.close()
    over.addEventListener('abort', close)
    await stream.ended
    over.removeEventListener('abort', close)
    for (const { data } of stream.frames) if ('seq' in data) received.push(data.seq)
  }
}

/** Resolves to undefined if the server does not answer: it may be stopped, and a client would ask another one then. */
async function ask(server: TestServer, ...request: Parameters<TestServer['call']>): Promise<Answer | undefined> {
  const answer = server.call(...request).catch(() => undefined)
  return await Promise.race([answer, takeTime(ANSWER_MS).then(() => undefined)])
}

async function statusOf(id: string, anywhere: () => TestServer): Promise<string | undefined> {
  const answer = await ask(anywhere(), 'GET', `/conversations/${id}`)
  return answer?.status === 200 ? answer.body.status : 'running'
}

const untilAtRest = (id: string, anywhere: () => TestServer) =>
  until('the last run to end', async () => (await statusOf(id, anywhere)) === 'idle')

async function check(
  { id, acknowledged, received }: Client,
  instances: readonly Instance[],
  what: string,
): Promise<void> {
  const logs = []
  for (const { server } of instances) logs.push(await eventsAt(server, id))
  const [events = [], ...others] = logs
  for (const other of others) expect(other, what).toEqual(events)
  expect(brokenRules(events), what).toEqual([])
  const messages = events.filter((event) => event.type === 'UserMessage')
  const found = acknowledged.map(({ text }) =>
    messages.flatMap(({ content, seq, id: event_id }) =>
      JSON.stringify(content).includes(`"${text}"`) ? [{ seq, event_id }] : [],
    ),
  )
  expect(found, what).toEqual(acknowledged.map(({ reported: { seq, event_id } }) => [{ seq, event_id }]))
  expect(received, what).toEqual(events.slice(0, received.length).map(({ seq }) => seq))
}

async function eventsAt(server: TestServer, id: string): Promise<Event[]> {
  const events: Event[] = []
  for (let page: string | null = ''; page !== null;) {
    const more = page === '' ? '' : `&page_id=${page}`
    const { status, body } = await server.call('GET', `/conversations/${id}/events?limit=1000${more}`)
    expect(status, JSON.stringify(body)).toBe(200)
    events.push(...(body.items as Event[]))
    page = body.next_page_id
  }
  return events
}
