/** What two clients get who want the same thing at the same time, at two servers on one database. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { PATIENCE_MS, effort } from '../support/patience.ts'
import { instanceOn } from '../support/instances.ts'
import type { TestDatabase } from '../support/postgres.ts'
import { createDatabase } from '../support/postgres.ts'
import type { Random } from '../support/random.ts'
import { createRandom } from '../support/random.ts'
import type { RacingRequest } from '../support/send-together.ts'
import { sendTogether } from '../support/send-together.ts'
import type { TestServer } from '../support/server.ts'
import { KEY, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'
import { connectAs } from '../support/socket.ts'
import { requestsOf } from './requests.ts'

const ROUNDS = effort(6, 300)
/** The first two numbers of six seeds from here on are all four pairs: every request comes first, at every server. */
const FIRST_SEED = 5
/** A client with more wrong tickets is refused for a while. */
const TICKET_ROUNDS = Math.min(ROUNDS, 18)

let database: TestDatabase
let stage: Stage
let servers: readonly [TestServer, TestServer]

beforeAll(async () => {
  database = await createDatabase()
  const env = instanceOn(database)
  const script = {
    replies: [
      { when: 'ask', turns: [bash('echo approved >> approved.txt'), { text: 'Done.' }] },
      { turns: [{ text: 'Done.' }] },
    ],
  }
  stage = await setStage(script, { env })
  servers = [stage.server, await startServer({ env })]
})
afterAll(async () => {
  await servers[1][Symbol.asyncDispose]()
  await stage[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})

/** The same requests again with each seed: which server has the conversation, and which request comes first. */
function eachRound(name: string, round: (random: Random) => Promise<void>, rounds = ROUNDS): void {
  test(name, { timeout: effort(2, 10) * PATIENCE_MS }, async () => {
    expect.hasAssertions()
    for (let seed = FIRST_SEED; seed < FIRST_SEED + rounds; seed++)
      await round(createRandom(seed)).catch((cause: unknown) => {
        throw new Error(`seed ${seed}: ${String(cause)}`, { cause })
      })
  })
}

const llmConfig = () => ({ model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' })

async function create(random: Random, fields: object = {}): Promise<string> {
  const { status, body } = await random
    .pick(servers)
    .call('POST', '/conversations', { llm_config: llmConfig(), ...fields })
  expect(status, JSON.stringify(body)).toBe(201)
  return body.id
}

const atBoth = (random: Random, request: (which: number) => Omit<RacingRequest, 'at'>) =>
  sendTogether(
    random,
    servers.map((at, which) => ({ at, ...request(which) })),
  )

const outcome = ({ status, body }: { status: number; body?: any }) => [status, body?.error] // eslint-disable-line typescript/no-explicit-any
const byStatus = (one: { status: number }, other: { status: number }) => one.status - other.status

test('a ticket of one instance opens the streams of the other one, and they end with its key', async () => {
  const [issuing, asked] = servers
  const id = await create(createRandom(0))
  const key = await issuing.call('POST', '/keys', { name: 'page', scopes: ['read'] })
  const headers = { authorization: `Bearer ${key.body.key}` }
  const ticketFor = async (wanted: object) => {
    const { body } = await issuing.call('POST', '/stream-tickets', wanted, headers)
    return `ticket=${body.ticket}`
  }
  const path = `/conversations/${id}`
  const firehose = await fetch(`${asked.url}/firehose?${await ticketFor({ firehose: true })}`)
  const socket = await connectAs(asked.url, `${path}/ws?${await ticketFor({ conversation_id: id })}`, {})
  await socket.until(({ type }) => type === 'ready')
  await issuing.call('DELETE', `/keys/${key.body.id}`)
  await Promise.all([socket.closed, firehose.text()])
  expect(firehose.status).toBe(200)
})

describe('of two requests at two instances', () => {
  eachRound(
    'the decision about a call that comes first counts, and the other one is already_answered',
    async (random) => {
      const id = await create(random, { confirmation_mode: true })
      const path = `/conversations/${id}`
      const message = { role: 'user', content: 'ask' }
      await random.pick(servers).call('POST', `${path}/messages`, { message, run: true })
      const { call } = random.pick(servers)
      const [open] = await until('the request', async () => {
        const found = await requestsOf(call, id, 'permission')
        return found.length > 0 && found
      })
      const { tool_use_id, input_hash } = open.payload.tool_uses[0]
      const first = random.below(2)
      const behaviorAt = (which: number) => (which === first ? 'allow' : 'deny')
      const answers = await atBoth(random, (which) => ({
        method: 'POST',
        path: `${path}/requests/${open.request_id}`,
        body: { kind: 'permission', decisions: [{ tool_use_id, input_hash, behavior: behaviorAt(which) }] },
      }))
      expect(answers.toSorted(byStatus).map(outcome)).toEqual([
        [200, undefined],
        [409, 'already_answered'],
      ])
      const behavior = behaviorAt(answers.findIndex(({ status }) => status === 200))
      await until('the end', async () => (await call('GET', path)).body.status === 'idle')
      const events = await stage.events(id)
      const answered = events.filter(({ type }) => type === 'RequestAnswered')
      expect(answered).toMatchObject([{ answer: { decisions: [{ behavior }] } }])
      const { items } = (await call('GET', `${path}/files`)).body
      expect(items.map(({ path: name }: { path: string }) => name)).toEqual(
        behavior === 'allow' ? ['approved.txt'] : [],
      )
    },
  )

  eachRound(
    'one creates the conversation of an Idempotency-Key, and the other gets it or is in flight',
    async (random) => {
      const headers = { 'idempotency-key': randomUUID() }
      const request = { method: 'POST', path: '/conversations', headers, body: { llm_config: llmConfig() } }
      const answers = await atBoth(random, () => request)
      const made = new Set(answers.flatMap(({ status, body }) => (status === 201 ? [body.id as string] : [])))
      expect(made.size, JSON.stringify(answers)).toBe(1)
      for (const answer of answers)
        if (answer.status !== 201) expect(outcome(answer)).toEqual([409, 'idempotency_in_flight'])
      for (const { call } of servers) {
        const again = await call(request.method, request.path, request.body, headers)
        expect([again.status, again.body.id]).toEqual([201, ...made])
      }
    },
  )

  eachRound('one stores the message of an Idempotency-Key, and both get it, or one is in flight', async (random) => {
    const path = `/conversations/${await create(random)}`
    const headers = { 'idempotency-key': randomUUID() }
    const isSame = random.below(2) === 0
    const contentOf = (which: number) => (isSame ? 'Hello' : `Hello ${which}`)
    const answers = await atBoth(random, (which) => ({
      method: 'POST',
      path: `${path}/messages`,
      headers,
      body: { message: { role: 'user', content: contentOf(which) } },
    }))
    const stored = answers.filter(({ status }) => status === 202)
    expect(stored.length, JSON.stringify(answers)).toBeGreaterThan(0)
    if (!isSame) expect(stored).toHaveLength(1)
    for (const answer of answers)
      if (answer.status !== 202)
        expect([[409, 'idempotency_in_flight'], ...(isSame ? [] : [[422, 'idempotency_mismatch']])]).toContainEqual(
          outcome(answer),
        )
    const events = await stage.events(path.split('/').at(-1)!, 'types=UserMessage')
    expect(events).toHaveLength(1)
    for (const { body } of stored) expect(body).toEqual(stored[0]!.body)
  })

  eachRound(
    'one stores the message of a client_message_id, and both get it, unless it is another one',
    async (random) => {
      const id = await create(random)
      const isSame = random.below(2) === 0
      const answers = await atBoth(random, (which) => ({
        method: 'POST',
        path: `/conversations/${id}/messages`,
        body: { message: isSame ? 'Hello' : `Hello ${which}`, client_message_id: 'm-1' },
      }))
      const [first, second] = answers.toSorted(byStatus).map(outcome)
      expect([first, second]).toEqual(
        isSame
          ? [
              [200, undefined],
              [202, undefined],
            ]
          : [
              [202, undefined],
              [409, 'message_exists'],
            ],
      )
      if (isSame) expect(answers[0]!.body).toEqual(answers[1]!.body)
      expect(await stage.events(id, 'types=UserMessage')).toHaveLength(1)
    },
  )

  eachRound('one creates the conversation of an id, and the other is conversation_exists', async (random) => {
    const id = randomUUID()
    const answers = await atBoth(random, (which) => ({
      method: 'POST',
      path: '/conversations',
      body: { id, title: `of ${which}`, llm_config: llmConfig() },
    }))
    expect(answers.toSorted(byStatus).map(outcome)).toEqual([
      [201, undefined],
      [409, 'conversation_exists'],
    ])
    const title = `of ${answers.findIndex(({ status }) => status === 201)}`
    for (const { call } of servers) expect((await call('GET', `/conversations/${id}`)).body.title).toBe(title)
  })

  eachRound('one creates the conversation of an external id, and the other finds it', async (random) => {
    const external_id = randomUUID()
    const answers = await atBoth(random, () => ({
      method: 'POST',
      path: '/conversations',
      body: { external_id, llm_config: llmConfig() },
    }))
    expect(
      answers.toSorted(byStatus).map(({ status }) => status),
      JSON.stringify(answers),
    ).toEqual([200, 201])
    expect(answers[0]!.body.id).toBe(answers[1]!.body.id)
  })

  eachRound('one makes the fork of an Idempotency-Key, and the other gets it or is in flight', async (random) => {
    const id = await create(random, { initial_message: 'Hello' })
    const headers = { 'idempotency-key': randomUUID() }
    const request = { method: 'POST', path: `/conversations/${id}/fork`, headers, body: {} }
    const answers = await atBoth(random, () => request)
    const made = new Set(answers.flatMap(({ status, body }) => (status === 201 ? [body.id as string] : [])))
    expect(made.size, JSON.stringify(answers)).toBe(1)
    for (const answer of answers)
      if (answer.status !== 201) expect(outcome(answer)).toEqual([409, 'idempotency_in_flight'])
    for (const { call } of servers) {
      const again = await call(request.method, request.path, request.body, headers)
      expect([again.status, again.body.id]).toEqual([201, ...made])
    }
  })

  eachRound('one rewinds the conversation, and for the other it has changed', async (random) => {
    const path = `/conversations/${await create(random)}`
    const { body: message } = await random
      .pick(servers)
      .call('POST', `${path}/messages`, { message: { role: 'user', content: 'Hello' } })
    const answers = await atBoth(random, () => ({
      method: 'POST',
      path: `${path}/rewind`,
      body: { to_seq: message.seq - 1, last_seq: message.seq },
    }))
    expect(answers.toSorted(byStatus).map(outcome), JSON.stringify(answers)).toEqual([
      [200, undefined],
      [409, 'conversation_changed'],
    ])
    for (const { call } of servers) {
      const { items } = (await call('GET', `${path}/events?types=Rewound`)).body
      expect(items).toHaveLength(1)
    }
  })

  eachRound(
    'one opens the stream of a ticket, and the other is unauthorized',
    async (random) => {
      const id = await create(random)
      const isFirehose = random.below(3) === 0
      const wanted = isFirehose ? { firehose: true } : { conversation_id: id }
      const { body } = await random.pick(servers).call('POST', '/stream-tickets', wanted)
      const stream = isFirehose ? '/firehose' : `/conversations/${id}/events/stream`
      const answers = await atBoth(random, () => ({
        method: 'GET',
        path: `${stream}?ticket=${body.ticket}`,
        headers: { authorization: '', accept: 'text/event-stream' },
      }))
      expect(answers.toSorted(byStatus).map(outcome)).toEqual([
        [200, undefined],
        [401, 'unauthorized'],
      ])
    },
    TICKET_ROUNDS,
  )

  eachRound(
    'one deletes the conversation, and the other, and a message that comes too late, are conversation_deleted',
    async (random) => {
      const id = await create(random)
      const path = `/conversations/${id}`
      const message: RacingRequest = {
        at: random.pick(servers),
        method: 'POST',
        path: `${path}/messages`,
        body: { message: { role: 'user', content: 'Hello' }, run: random.below(2) === 0 },
      }
      const deletions = servers.map((at): RacingRequest => ({ at, method: 'DELETE', path }))
      const [first, second, sent] = await sendTogether(random, [...deletions, message])
      expect([first!, second!].toSorted(byStatus).map(outcome)).toEqual([
        [204, undefined],
        [410, 'conversation_deleted'],
      ])
      if (sent!.status !== 202) expect(outcome(sent!)).toEqual([410, 'conversation_deleted'])
      for (const server of servers) {
        const got = await server.call('GET', path)
        expect([got.status, got.body.error], JSON.stringify(got.body)).toEqual([410, 'conversation_deleted'])
        const list = await server.call('GET', '/conversations?limit=100', undefined, { authorization: `Bearer ${KEY}` })
        expect(list.body.items.map((one: { id: string }) => one.id)).not.toContain(id)
      }
    },
  )
})
