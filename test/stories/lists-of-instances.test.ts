/** Two servers on one real database: each lists the conversations of both, and takes none of them over. */
import { Client } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { sendRaw } from '../support/a2a.ts'
import { bash, setStage } from '../support/agent.ts'
import { instanceOn } from '../support/instances.ts'
import { longEnough } from '../support/long-enough.ts'
import type { TestDatabase } from '../support/postgres.ts'
import { createDatabase } from '../support/postgres.ts'
import type { TestServer } from '../support/server.ts'
import { KEY, startServer } from '../support/server.ts'
import { subscribe } from '../support/stream.ts'
import { until } from '../support/until.ts'

const script = {
  replies: [
    { when: 'long', turns: [bash('sleep 1000'), { text: 'Done.' }] },
    { when: 'Ask', turns: [bash('rm -rf x'), { text: 'Done.' }] },
    { when: 'Look', turns: [{ calls: [{ name: 'look_up', arguments: {} }] }, { text: 'Done.' }] },
    { turns: [{ text: 'All is well.' }] },
  ],
}

const MASTER = { authorization: `Bearer ${KEY}` }

let database: TestDatabase
let stage: Stage
let owner: TestServer
let asked: TestServer

const env = () => ({ ...instanceOn(database), OPENHANDS_PROTOCOLS: 'a2a' })

beforeAll(async () => {
  database = await createDatabase()
  stage = await setStage(script, { env: env() })
  owner = stage.server
  asked = await startServer({ env: env() })
})
afterAll(async () => {
  await asked[Symbol.asyncDispose]()
  await stage[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})

const create = async (fields: object = {}, server = owner): Promise<string> => {
  const llm_config = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
  const { body } = await server.call('POST', '/conversations', { llm_config, ...fields })
  return body.id
}

const say = (content: string, run = true) => ({ message: { role: 'user', content }, run })

const summaryAt = async (server: TestServer, id: string, headers = {}) => {
  const { body } = await server.call('GET', '/conversations/summaries?limit=100', undefined, headers)
  return body.items.find((row: { id: string }) => row.id === id)
}
const viewAt = async (server: TestServer, id: string) => {
  const { body } = await server.call('GET', '/conversations?limit=100')
  return body.items.find((view: { id: string }) => view.id === id)
}

/** Nobody has opened it but its creator. */
const ownersOf = async (id: string) =>
  await database.query('select owner, epoch from conversations where id = $1', [id])

test('a conversation, its status, words and end are in the lists of another instance as soon as they are stored', async () => {
  const id = await create({ title: 'New', labels: ['a'], user_id: 'u' })
  const before = await ownersOf(id)
  expect(await summaryAt(asked, id)).toEqual(await summaryAt(owner, id))
  expect(await viewAt(asked, id)).toEqual(await viewAt(owner, id))
  const { body: count } = await asked.call('GET', '/conversations/count?label=a&user_id=u')
  expect(count).toEqual({ count: 1 })

  await owner.call('POST', `/conversations/${id}/messages`, say('Hello.', false))
  await owner.call('POST', `/conversations/${id}/run`, { wait: true })
  await until('the end', async () => (await summaryAt(asked, id)).status === 'idle')
  expect(await summaryAt(asked, id)).toMatchObject({ preview: 'Hello.', last_words: 'All is well.' })
  expect(await summaryAt(asked, id)).toEqual(await summaryAt(owner, id))
  expect(await viewAt(asked, id)).toEqual(await viewAt(owner, id))

  expect((await owner.call('PUT', `/conversations/${id}/config`, { title: 'Renamed' })).status).toBe(200)
  await until('the title at the other instance', async () => (await summaryAt(asked, id)).title === 'Renamed')
  expect(await summaryAt(asked, id)).toEqual(await summaryAt(owner, id))
  expect(await ownersOf(id)).toEqual(before)

  await asked.call('DELETE', `/conversations/${id}`)
  for (const server of [owner, asked]) expect(await summaryAt(server, id)).toBeUndefined()
})

test('a running conversation is listed by another instance with its current call, and its waiting requests', async () => {
  const id = await create()
  await owner.call('POST', `/conversations/${id}/messages`, say('Take long.'))
  await until('the call at the other instance', async () => (await summaryAt(asked, id)).current_call !== undefined)
  expect(await summaryAt(asked, id)).toEqual(await summaryAt(owner, id))
  expect(await viewAt(asked, id)).toMatchObject({ status: 'running' })
  expect((await asked.call('GET', '/conversations/count?status=running')).body).toEqual({ count: 1 })
  await owner.call('POST', `/conversations/${id}/interrupt`)

  const asking = await create({ permission_mode: 'default' })
  await owner.call('POST', `/conversations/${asking}/messages`, say('Ask me.'))
  const waitingAt = async (server: TestServer) => (await server.call('GET', '/requests')).body
  await until('the request', async () => (await waitingAt(owner)).items.length === 1)
  expect(await waitingAt(asked)).toEqual(await waitingAt(owner))
  expect((await summaryAt(asked, asking)).waiting).toBe(1)
})

test('the owner ends a request at its deadline, and another instance neither takes it over nor reports an error', async () => {
  const id = await longEnough(1, async (timeout) => {
    const tool = { name: 'look_up', description: 'Looks up.', input_schema: { type: 'object' }, timeout }
    const made = await create({ client_tools: [tool] })
    await owner.call('POST', `/conversations/${made}/messages`, say('Look up.'))
    const seen = await until('the request at the other instance, or its end', async () => {
      const { waiting, status } = await summaryAt(asked, made)
      return waiting === 1 ? 'waiting' : status === 'idle' && 'too late'
    })
    return seen === 'waiting' && made
  })
  const before = await ownersOf(id)
  await until('the deadline', async () => (await summaryAt(asked, id)).status === 'idle')
  expect(await summaryAt(asked, id)).toEqual(await summaryAt(owner, id))
  expect(await ownersOf(id)).toEqual(before)
  expect(asked.output()).not.toContain('could not be recovered')
})

test('a fork without a new event, and what an instance of an earlier version appends and deletes, are in the lists', async () => {
  const id = await create()
  const { body } = await owner.call('POST', `/conversations/${id}/fork`, {})
  expect(await summaryAt(asked, body.id)).toEqual(await summaryAt(owner, body.id))
  await database.query('update conversations set listed = null, listed_seq = 0 where id = $1', [id])
  await using third = await startServer({ env: env() })
  expect(await summaryAt(third, id)).toEqual(await summaryAt(owner, id))
  expect(third.output()).not.toContain('cannot be read')
  // As an earlier version does it.
  await database.query('insert into deletions (conversation_id) values ($1)', [body.id])
  expect(await summaryAt(third, body.id)).toBeUndefined()
})

test('a key that is limited to a user or to conversations sees and reaches what another instance made', async () => {
  const [mine, other] = [await create({ user_id: 'me' }), await create({ user_id: 'you' })]
  for (const limit of [{ user_id: 'me' }, { conversations: [mine] }]) {
    const { body } = await asked.call('POST', '/keys', { name: 'limited', scopes: ['read'], ...limit })
    const headers = { authorization: `Bearer ${body.key}` }
    expect(await summaryAt(asked, mine, headers)).toMatchObject({ id: mine })
    expect(await summaryAt(asked, other, headers)).toBeUndefined()
    expect((await asked.call('GET', `/conversations/${mine}`, undefined, headers)).status).toBe(200)
    expect((await asked.call('GET', `/conversations/${other}`, undefined, headers)).status).toBe(404)
  }
})

test('a limited key gets a ticket for a conversation that another instance has just made', async () => {
  const { body: key } = await asked.call('POST', '/keys', { name: 'limited', scopes: ['read'], user_id: 'ticket' })
  const id = await create({ user_id: 'ticket' })
  const headers = { authorization: `Bearer ${key.key}` }
  const { status, body } = await asked.call('POST', '/stream-tickets', { conversation_id: id }, headers)
  expect([status, body.error]).toEqual([201, undefined])
})

test('the lists of keys and of logins have what another instance has just made', async () => {
  const { body: key } = await owner.call('POST', '/keys', { name: 'listed', scopes: ['read'] })
  expect((await asked.call('GET', '/keys')).body.items).toContainEqual(expect.objectContaining({ id: key.id }))
  const { body: login } = await owner.call('POST', '/logins', { key: KEY })
  expect((await asked.call('GET', '/logins')).body.items).toContainEqual(expect.objectContaining({ id: login.id }))
})

test('a reader of the firehose of another instance receives the events and the deletion of a new conversation', async () => {
  const { body: made } = await asked.call('POST', '/keys', { name: 'limited', scopes: ['read'], user_id: 'fire' })
  for (const key of [KEY, made.key]) {
    const reader = await subscribe(asked.url, '/firehose', { authorization: `Bearer ${key}` })
    const id = await create({ user_id: 'fire' })
    await reader.until(({ event, data }) => event === 'SystemInit' && data.conversation_id === id)
    await owner.call('DELETE', `/conversations/${id}`)
    await reader.until(({ event, data }) => event === 'conversation_deleted' && data.conversation_id === id)
    expect(await summaryAt(asked, id)).toBeUndefined()
    reader.close()
    await reader.ended
    const deletions = reader.frames.filter(({ event }) => event === 'conversation_deleted')
    expect(deletions.map(({ data }) => data.conversation_id)).toEqual([id])
  }
})

test('the tasks of an A2A context are listed by its owner, and a list of all leaves none of another instance out', async () => {
  const id = await create({ external_id: 'listed' })
  const { body: sent } = await owner.call('POST', `/conversations/${id}/messages`, say('Hello.'))
  const before = await ownersOf(id)
  const list = { jsonrpc: '2.0', id: 1, method: 'ListTasks', params: { contextId: 'listed' } }
  for (const { body } of [
    { body: (await sendRaw(`${asked.url}/a2a`, list)).body.result },
    await sendRaw(`${asked.url}/a2a/v1/tasks?contextId=listed`, undefined, { method: 'GET' }),
  ])
    expect(body).toMatchObject({ tasks: [{ id: `${id}-${sent.seq}` }], totalSize: 1 })
  const all = await sendRaw(`${asked.url}/a2a/v1/tasks`, undefined, { method: 'GET' })
  expect(all.status).toBe(200)
  expect(all.body.tasks).toContainEqual(expect.objectContaining({ id: `${id}-${sent.seq}`, contextId: 'listed' }))
  expect(await ownersOf(id)).toEqual(before)
})

test('a start does not wait for the list of all conversations, which its first requests find nevertheless', async () => {
  const keyed = { 'idempotency-key': 'before-the-start' }
  const llm_config = { model: 'scripted', base_url: 'http://127.0.0.1:9/v1', api_key: 'scripted-model-key' }
  await using third = await startServer({ env: env() })
  const { body: made } = await third.call('POST', '/conversations', { llm_config, user_id: 'slow' }, keyed)
  // As a server that was alone has left it.
  await database.query("delete from creation_claims where key like '%before-the-start'")
  const { body: key } = await asked.call('POST', '/keys', { name: 'limited', scopes: ['read'], user_id: 'slow' })
  const blocker = new Client({ connectionString: database.url })
  blocker.on('error', () => {}) // a test that fails drops the database
  await blocker.connect()
  await blocker.query('begin; lock table summaries in access exclusive mode')
  await third.restart('SIGKILL')
  const headers = { authorization: `Bearer ${key.key}` }
  expect(await third.call('GET', `/conversations/${made.id}`, undefined, headers)).toMatchObject({ status: 200 })
  expect((await third.call('POST', `/conversations/${made.id}/events`, { name: 'here' })).status).toBe(201)
  expect(await (await fetch(`${third.url}/metrics`, { headers: MASTER })).text()).not.toMatch(/_conversations\{/)
  const listing = summaryAt(third, made.id)
  const counting = third.call('GET', '/conversations/count?user_id=slow')
  const repeating = third.call('POST', '/conversations', { llm_config, user_id: 'slow' }, keyed)
  const deleting = third.call('DELETE', `/conversations/${await create({ user_id: 'slow' })}`)
  await blocker.end()
  expect(await listing).toMatchObject({ id: made.id })
  expect((await repeating).body.id).toBe(made.id)
  expect((await deleting).status).toBe(204)
  await counting
  expect((await third.call('GET', '/conversations/count?user_id=slow')).body).toEqual({ count: 1 })
})
