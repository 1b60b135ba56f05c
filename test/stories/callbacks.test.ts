/** Callbacks of a real server, to receivers with every fault there is, and with kills of the server in between. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { hasFiles, startServer } from '../support/server.ts'
import type { Answering, Receiver } from '../support/receiver.ts'
import { firstSeqsOf, seqsOf, startReceiver } from '../support/receiver.ts'

const ALLOWED = { OPENHANDS_CALLBACK_ALLOW: '127.0.0.1' }
const shared = await startServer({ env: ALLOWED })
afterAll(() => shared[Symbol.asyncDispose]())

const SCRIPT = ({ body }: { body: { messages: readonly { role: string }[] } }) =>
  body.messages.at(-1)!.role === 'user' ? bash('echo working') : { text: 'Done.' }

async function register({ server }: Stage, id: string, receiver: Receiver, fields: object = {}) {
  const { status, body } = await server.call('POST', `/conversations/${id}/callbacks`, { url: receiver.url, ...fields })
  expect(status, JSON.stringify(body)).toBe(201)
  receiver.secret = body.secret
  return { secret: body.secret as string, path: `/conversations/${id}/callbacks/${body.id}` }
}

/** Each event at least once, in order, unchanged; what came again under the same id. Signatures were checked as it came. */
async function expectAllDelivered(stage: Stage, id: string, receiver: Receiver, from: number): Promise<void> {
  const events = (await stage.events(id)).filter(({ seq }) => seq > from)
  const [last] = events.slice(-1)
  await receiver.untilReceived((all) => seqsOf(all).includes(last.seq))
  expect(firstSeqsOf(receiver.received)).toEqual(events.map(({ seq }) => seq))
  for (const { id: webhookId, body } of receiver.received) {
    expect(body).toEqual({ conversation_id: id, event: events[body.event.seq - from - 1] })
    expect(webhookId).toBe(body.event.id)
  }
}

test('every fault of a receiver, and the server killed in the middle of each: nothing is lost, nothing comes out of order', async () => {
  await using stage = await setStage(SCRIPT, shared)
  await using elsewhere = await startReceiver()
  // What the receiver does with the first attempts at each event; then it takes it.
  const faults: Record<string, Answering> = {
    '500': () => 500,
    '429 for a second': (_, response) => void response.writeHead(429, { 'retry-after': '1' }).end(),
    '503 until a date': (_, response) => {
      response.writeHead(503, { 'retry-after': new Date(Date.now() + 1000).toUTCString() }).end()
    },
    'a redirect': (_, response) => void response.writeHead(307, { location: elsewhere.url }).end(),
    'an answer that is cut off': (_, response) => {
      response.writeHead(200, { 'content-length': '1000' }).write('half of ', () => response.destroy())
    },
    'a connection that is cut': (_, response) => void response.destroy(),
  }
  const subjects = await Promise.all(
    Object.entries(faults).map(async ([what, fault]) => {
      const receiver = await startReceiver()
      const id = await stage.create()
      await register(stage, id, receiver)
      const failed = new Set<string>()
      receiver.answer = (one, ...rest) => {
        if (failed.size >= 2 || failed.has(one.id)) return 204
        failed.add(one.id)
        return fault(one, ...rest)
      }
      return { what, id, receiver }
    }),
  )
  await using down = await startReceiver()
  const behind = await stage.create()
  await register(stage, behind, down)
  await down.down()

  for (const { id } of subjects) await stage.say(id, 'hello')
  await stage.say(behind, 'hello')
  await stage.server.restart('SIGKILL')
  await down.up()
  for (const { id } of subjects) await stage.server.call('POST', `/conversations/${id}/run`)
  await stage.server.restart('SIGKILL')
  for (const { what, id, receiver } of [...subjects, { what: 'down', id: behind, receiver: down }]) {
    await expectAllDelivered(stage, id, receiver, 1)
    const { items } = (await stage.server.call('GET', `/conversations/${id}/callbacks`)).body
    expect(items, what).toMatchObject([{ enabled: true }])
    await receiver[Symbol.asyncDispose]()
  }
  expect(elsewhere.received).toEqual([])
})

test('a receiver that is gone disables its callback; enabled again it continues from there, also after a restart', async () => {
  await using stage = await setStage(SCRIPT, shared)
  await using receiver = await startReceiver(() => 410)
  const id = await stage.create()
  const { path } = await register(stage, id, receiver)
  await stage.say(id, 'hello')
  const look = async () => (await stage.server.call('GET', path)).body
  await expect.poll(async () => (await look()).enabled).toBe(false)
  expect(receiver.received).toHaveLength(1)
  await stage.server.restart()
  expect(await look()).toMatchObject({ enabled: false, disabled_reason: 'the receiver answered 410 Gone', cursor: 1 })
  receiver.answer = () => 204
  await stage.server.call('PUT', path, { enabled: true })
  await expectAllDelivered(stage, id, receiver, 1)
})

test('a receiver that never answers holds up neither the agent nor another receiver', async () => {
  await using stage = await setStage(SCRIPT, { env: ALLOWED })
  await using slow = await startReceiver(() => {})
  await using quick = await startReceiver()
  const id = await stage.create()
  await register(stage, id, slow)
  await register(stage, id, quick)
  // The run ends while the first delivery is still waited for.
  const run = await stage.say(id, 'hello')
  expect(run.at(-1)).toMatchObject({ type: 'StatusUpdate', previous_status: 'running' })
  await expectAllDelivered(stage, id, quick, 1)
  await slow.untilReceived((all) => all.length > 0)
  expect(seqsOf(slow.received)).toEqual([2])
  expect(await stage.server.stop()).toBe(0)
})

test.runIf(hasFiles)(
  'the secret is returned once: no other answer, no event, no line of the log and no file has it, nor the headers',
  async () => {
    await using stage = await setStage(SCRIPT, { env: { ...ALLOWED, OPENHANDS_LOG_LEVEL: 'DEBUG' } })
    await using receiver = await startReceiver()
    const id = await stage.create()
    const token = 'a-token-for-the-receiver'
    const { secret, path } = await register(stage, id, receiver, { headers: { authorization: `Bearer ${token}` } })
    await stage.say(id, `Their secret is ${secret} and their token is ${token}.`)
    await expectAllDelivered(stage, id, receiver, 1)
    expect(receiver.received[0]!.headers['authorization']).toBe(`Bearer ${token}`)

    const paths = [path, `${path}/deliveries`, `/conversations/${id}/callbacks`, `/conversations/${id}`]
    const answers = await Promise.all(
      paths.map(async (each) => JSON.stringify((await stage.server.call('GET', each)).body)),
    )
    const put = await stage.server.call('PUT', path, { events: null })
    const files = ['events.jsonl', 'callbacks.json', 'meta.json'].map((name) =>
      readFile(join(stage.server.dataDir, 'sessions', id, name), 'utf8'),
    )
    const shown = [...answers, JSON.stringify(put.body), ...(await Promise.all(files)), stage.server.output()]
    for (const text of [...shown, ...receiver.received.map((one) => one.text)]) {
      expect(text).not.toContain(secret.slice('whsec_'.length))
      expect(text).not.toContain(token)
    }
  },
)

test('by default nothing is delivered to this machine, and a permission can be withdrawn', async () => {
  await using stage = await setStage(SCRIPT, shared)
  await using receiver = await startReceiver()
  const id = await stage.create()
  const { path } = await register(stage, id, receiver)
  await stage.server.restart('SIGTERM', { OPENHANDS_CALLBACK_ALLOW: '' })
  const refused = await stage.server.call('POST', `/conversations/${id}/callbacks`, { url: receiver.url })
  expect(refused).toMatchObject({ status: 400, body: { error: 'callback_address_refused' } })
  await stage.say(id, 'hello')
  const pending = async () => (await stage.server.call('GET', `${path}/deliveries`)).body.items
  await expect
    .poll(pending)
    .toMatchObject([{ seq: 2, status: 'pending', error: expect.stringContaining('OPENHANDS_CALLBACK_ALLOW') }])
  expect((await stage.server.call('POST', `${path}/test`)).body).toMatchObject({ status: 'failed' })
  expect(receiver.received).toEqual([])
})
