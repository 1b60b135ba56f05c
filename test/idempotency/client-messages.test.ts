/** A message with the id of a client is stored once, for as long as its conversation exists. */
import { afterAll, describe, expect, test } from 'vitest'
import { findPostedMessage } from '../../src/idempotency/posted-message.ts'
import { EMPTY_STATE } from '../../src/state/state.ts'
import { withMessageId } from '../../src/state/idempotency.ts'
import { connectAs } from '../support/socket.ts'
import { expectProblem, KEY, setHttp } from '../http/fixtures.ts'
import type { HttpBench } from '../http/fixtures.ts'
import { endOf, eventsOf, only, realShells, setBench, userText } from '../conversations/fixtures.ts'

const http = await setHttp({ script: () => ({ text: 'Done.' }), deps: { createShells: realShells() } })
afterAll(() => http[Symbol.asyncDispose]())

const HELLO = { message: 'Hello', client_message_id: 'm-1' }

const post = ({ call }: HttpBench, id: string, body: object, headers?: Record<string, string>) =>
  call('POST', `/conversations/${id}/messages`, body, headers)

const messagesOf = async ({ bench }: HttpBench, id: string) =>
  only(await eventsOf(await bench.manager.open(id)), 'UserMessage')

async function runEnds({ bench }: HttpBench, id: string, runId: string) {
  await endOf(await bench.manager.open(id), runId)
}

describe('the same id again', () => {
  test('is 200 with the first answer: nothing is stored, and no second run begins', async () => {
    const id = await http.create()
    const first = await post(http, id, { ...HELLO, run: true })
    expect(first.status).toBe(202)
    await runEnds(http, id, first.body.run_id)
    const before = await eventsOf(await http.bench.manager.open(id))
    const second = await post(http, id, { ...HELLO, run: true })
    expect({ status: second.status, body: second.body }).toEqual({ status: 200, body: first.body })
    expect(await eventsOf(await http.bench.manager.open(id))).toEqual(before)
    expect(only(before, 'UserMessage')).toMatchObject([{ client_message_id: 'm-1', id: first.body.event_id }])
  })

  test('is the same message in another form, with another run, options and after_seq', async () => {
    const id = await http.create()
    const first = await post(http, id, HELLO)
    const content = [{ type: 'text', text: 'Hello' }]
    for (const more of [
      { message: { role: 'user', content } },
      { run: true, run_options: { max_steps: 1 } },
      { after_seq: 1 },
    ]) {
      const again = await post(http, id, { ...HELLO, ...more })
      expect({ status: again.status, body: again.body }).toEqual({ status: 200, body: first.body })
    }
    expect((await http.call('GET', `/conversations/${id}`)).body.status).toBe('idle')
  })

  test('stores one message when requests race, also with different keys, and one of them gets 202', async () => {
    const id = await http.create()
    const keys = [undefined, 'k-1', 'k-2', undefined]
    const answers = await Promise.all(
      keys.map((key) => post(http, id, { ...HELLO, run: true }, key === undefined ? {} : { 'idempotency-key': key })),
    )
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 200, 200, 202])
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
    expect(await messagesOf(http, id)).toHaveLength(1)
  })

  test.each([{ kill: false }, { kill: true }])('is the same event after a restart: %o', async (how) => {
    await using bench = await setBench({ script: () => ({ text: 'Done.' }) })
    const { id } = await bench.converse()
    const send = async () => {
      const clientMessage = { id: 'm-1', bodyHash: 'hash', formerHashes: [] }
      return await (await bench.manager.open(id)).post(userText('Hello', true), undefined, { clientMessage })
    }
    const first = await send()
    await endOf(await bench.manager.open(id), first.run_id!)
    for (const _ of [1, 2]) {
      await bench.restart(how)
      expect(await send()).toEqual({ ...first, isKnown: true })
    }
    expect(only(await eventsOf(await bench.manager.open(id)), 'UserMessage')).toHaveLength(1)
  })

  test('is the same event after its withdrawal and after a rewind', async () => {
    const id = await http.create()
    const first = await post(http, id, HELLO)
    const other = await post(http, id, { message: 'Wait', client_message_id: 'm-2' })
    const withdrawn = await http.call('DELETE', `/conversations/${id}/messages/${other.body.event_id}`)
    expect(withdrawn.status, withdrawn.text).toBe(200)
    expect(await post(http, id, { message: 'Wait', client_message_id: 'm-2' })).toMatchObject({
      status: 200,
      body: other.body,
    })
    const rewind = { to_seq: 1, last_seq: withdrawn.body.seq }
    expect((await http.call('POST', `/conversations/${id}/rewind`, rewind)).status).toBe(200)
    expect(await post(http, id, HELLO)).toMatchObject({ status: 200, body: first.body })
    expect(await messagesOf(http, id)).toHaveLength(2)
  })

  test('is the message of the copy in a fork that has it, and a new one in a fork that does not', async () => {
    const id = await http.create()
    const first = await post(http, id, HELLO)
    const forks = await Promise.all(
      [first.body.seq, first.body.seq - 1].map((at_seq) => http.call('POST', `/conversations/${id}/fork`, { at_seq })),
    )
    const answers = await Promise.all(forks.map(({ body }) => post(http, body.id, HELLO)))
    expect(answers.map(({ status }) => status)).toEqual([200, 202])
    const [copied] = await messagesOf(http, forks[0]!.body.id)
    expect(answers[0]!.body).toEqual({ event_id: copied!.id, seq: copied!.seq })
  })

  test('is acknowledged with the same result over a WebSocket', async () => {
    const id = await http.create()
    const first = await post(http, id, HELLO)
    const socket = await connectAs(await http.listen(), `/conversations/${id}/ws`, {
      headers: { authorization: `Bearer ${KEY}` },
    })
    socket.say({ type: 'message', id: '1', ...HELLO })
    expect(await socket.until((frame) => frame.id === '1')).toMatchObject({ type: 'ack', result: first.body })
    socket.say({ type: 'message', id: '2', ...HELLO, message: 'Bye' })
    expect(await socket.until((frame) => frame.id === '2')).toMatchObject({ type: 'problem', error: 'message_exists' })
    socket.close()
  })

  test('is another message in another conversation, and for another id', async () => {
    const [one, other] = [await http.create(), await http.create()]
    const statuses = []
    for (const [id, client_message_id] of [
      [one, 'm-1'],
      [other, 'm-1'],
      [one, 'm-2'],
      [one, 'M-1'],
    ] as const)
      statuses.push((await post(http, id, { ...HELLO, client_message_id })).status)
    expect(statuses).toEqual([202, 202, 202, 202])
  })
})

test('the id with another text or sender is 409, which names the event, and stores nothing', async () => {
  const id = await http.create()
  const { body } = await post(http, id, HELLO)
  const content = 'Hello'
  for (const message of ['Bye', { role: 'user', content, sender: 'reviewer' }]) {
    const refused = await post(http, id, { ...HELLO, message })
    expectProblem(refused, 409, 'message_exists')
    expect(refused.body.details).toEqual({ event_id: body.event_id, seq: body.seq })
  }
  expect(await messagesOf(http, id)).toHaveLength(1)
})

test('an id without a character, with more than 200, or with a secret is refused', async () => {
  const id = await http.create({ secrets: { TOKEN: 'the-secret-of-a-test-0815' } })
  for (const client_message_id of ['', 'm'.repeat(201), 'm-the-secret-of-a-test-0815'])
    expectProblem(await post(http, id, { ...HELLO, client_message_id }), 400, 'invalid_request')
  expect((await post(http, id, { ...HELLO, client_message_id: 'm'.repeat(200) })).status).toBe(202)
})

test('a message whose secret is redacted is known again, and one with another secret is not the same', async () => {
  const secrets = { ONE: 'the-secret-of-a-test-0815', OTHER: 'the-secret-of-a-test-0816' }
  const id = await http.create({ secrets })
  const first = await post(http, id, { ...HELLO, message: `Use ${secrets.ONE}.` })
  const again = await post(http, id, { ...HELLO, message: `Use ${secrets.ONE}.` })
  expect(again).toMatchObject({ status: 200, body: first.body })
  expectProblem(await post(http, id, { ...HELLO, message: `Use ${secrets.OTHER}.` }), 409, 'message_exists')
})

test('a key that is limited to profiles and has only the scope write can use it', async () => {
  const llm_config = { model: 'scripted', base_url: http.bench.model.baseUrl, api_key: 'the-key-of-a-model' }
  await http.call('PUT', '/profiles/reviewer', { llm_config })
  const made = await http.call('POST', '/keys', { name: 'limited', scopes: ['write'], profiles: ['reviewer'] })
  const key = { authorization: `Bearer ${made.body.key}` }
  const { id } = (await http.call('POST', '/conversations', { profile: 'reviewer' }, key)).body
  const first = await post(http, id, HELLO, key)
  expect(await post(http, id, HELLO, key)).toMatchObject({ status: 200, body: first.body })
  expectProblem(await post(http, id, { ...HELLO, message: 'Bye' }, key), 409, 'message_exists')
})

test('a known id reads one event and a new one reads none, and an id with the same hash is another one', async () => {
  const id = await http.create()
  for (const at of Array(20).keys()) await post(http, id, { message: 'Hello', client_message_id: `m-${at}` })
  const { log, state } = await http.bench.manager.open(id)
  let reads = 0
  const counted = { read: (...args: Parameters<typeof log.read>) => (reads++, log.read(...args)) }
  const find = (clientId: string, messageIds = state) =>
    findPostedMessage(
      counted,
      messageIds,
      { id: clientId, bodyHash: 'unknown', formerHashes: [] },
      { role: 'user', content: [{ type: 'text', text: 'Hello' }] },
    )
  expect(await find('new')).toBeUndefined()
  expect(reads).toBe(0)
  expect(await find('m-3')).toMatchObject({ client_message_id: 'm-3' })
  expect(reads).toBe(1)
  const [first] = await messagesOf(http, id)
  expect(await find('new', { ...state, ...withMessageId(EMPTY_STATE, 'new', first!.seq) })).toBeUndefined()
})

test('a conversation without such ids has no state for them', async () => {
  const id = await http.create()
  await post(http, id, { message: 'Hello' })
  expect((await http.bench.manager.open(id)).state.messageIds).toBe('')
})
