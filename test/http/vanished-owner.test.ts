/** Requests whose conversation another instance owned when they arrived, and this one owns when they are executed. */
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { RemoteConversations } from '../../src/http/remote/remote-conversations.ts'
import { connectAs } from '../support/socket.ts'
import { subscribe } from '../support/stream.ts'
import type { HttpBench } from './fixtures.ts'
import { KEY, expectProblem, setHttp } from './fixtures.ts'

/** The look-ups of each connection: the first one finds an owner, and the next ones do not. */
const asked = new WeakSet<object>()
const ownerElsewhere = async (connection: object) => {
  if (asked.has(connection)) return undefined
  asked.add(connection)
  return { instance: 7, address: 'http://127.0.0.1:9' }
}
const cluster = {
  ownerElsewhere,
  likelyOwnerElsewhere: ownerElsewhere,
  ownerOfKey: async () => undefined,
  ownerOfReplay: async () => undefined,
  successor: async () => undefined,
  send: async () => {
    throw new Error('There is no other instance.')
  },
}

let http: HttpBench
let url: string

beforeAll(async () => {
  let made: RemoteConversations | undefined
  const conversations = () => {
    const { storage: views, manager } = http.bench
    const logger = pino({ level: 'silent' })
    const instances = { own: 1, isOrphan: async () => false }
    return (made ??= new RemoteConversations({ cluster, instances, views, manager, logger }))
  }
  const remote: Pick<RemoteConversations, 'find' | 'elsewhere'> = {
    find: (request, id) => conversations().find(request, id),
    elsewhere: (request, id) => conversations().elsewhere(request, id),
  }
  http = await setHttp({ http: { peers: { cluster, remote } } })
  url = await http.listen()
})
afterAll(() => http[Symbol.asyncDispose]())

async function keyFor(fields: object): Promise<Record<string, string>> {
  const { body, text } = await http.call('POST', '/keys', { name: 'a test', ...fields })
  expect(body.key, text).toBeDefined()
  return { authorization: `Bearer ${body.key}` }
}

test('they are executed here', async () => {
  const path = `/conversations/${await http.create()}`
  const stream = await subscribe(url, `${path}/events/stream?after_seq=0`, { authorization: `Bearer ${KEY}` })
  const run = await http.call('POST', `${path}/run`, { wait: true })
  expect(run.body).toMatchObject({ status: 'idle', result: { stop_reason: 'completed' } })
  await stream.until(({ event }) => event === 'Result')
  stream.close()
  const socket = await connectAs(url, `${path}/ws`, { headers: { authorization: `Bearer ${KEY}` } })
  await socket.until(({ type }) => type === 'ready')
  socket.say({ type: 'message', message: { role: 'user', content: 'Hello' }, run: true })
  await socket.until(({ type }) => type === 'Result')
  socket.close()
})

test('a key without the scope of the route is refused', async () => {
  const path = `/conversations/${await http.create()}`
  const reader = await keyFor({ scopes: ['read'] })
  expectProblem(await http.call('POST', `${path}/run`, {}, reader), 403, 'forbidden')
  const writer = await keyFor({ scopes: ['write'] })
  expectProblem(await http.call('GET', `${path}/events/stream`, undefined, writer), 403, 'forbidden')
})

test('a key that does not see the conversation gets 404', async () => {
  const path = `/conversations/${await http.create({ user_id: 'one' })}`
  const other = await keyFor({ scopes: ['read', 'write'], user_id: 'another' })
  expectProblem(await http.call('POST', `${path}/run`, {}, other), 404, 'conversation_not_found')
  expectProblem(await http.call('GET', `${path}/events/stream`, undefined, other), 404, 'conversation_not_found')
  const refused = connectAs(url, `${path}/ws`, { headers: other })
  await expect(refused).rejects.toMatchObject({ status: 404, body: { error: 'conversation_not_found' } })
})
