/** `kill -9` of an owner whose conversations are each in another phase of their work: what holds after the takeover, for every phase. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Script } from '../../src/llm/scripted/script.ts'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { asksForSummary } from '../support/chat-requests.ts'
import { instanceOn } from '../support/instances.ts'
import { brokenRules } from '../support/log-rules.ts'
import type { TestDatabase } from '../support/postgres.ts'
import { createDatabase } from '../support/postgres.ts'
import type { Receiver } from '../support/receiver.ts'
import { firstSeqsOf, startReceiver } from '../support/receiver.ts'
import type { Answer, TestServer } from '../support/server.ts'
import { startServer } from '../support/server.ts'
import type { Subscriber } from '../support/stream.ts'
import { subscribe } from '../support/stream.ts'
import { createPlanner, ofMain, ofSubagents, task } from '../support/subagents.ts'
import { until } from '../support/until.ts'
import { approve, requestsOf } from './requests.ts'

const planner = createPlanner()
planner.plan = {
  'Write slowly': [{ text: 'Begun, and not ended. '.repeat(5000), chunk_delay_ms: 30 }],
  'Take long': [bash('sleep 1000'), { text: 'Done.' }],
  'Ask first': [bash('echo asked'), { text: 'Done.' }],
  'Be short': [{ text: 'Done.' }],
  'Be long': [{ text: 'word '.repeat(2400) }],
  Delegate: [{ calls: [task('Work in the background', { run_in_background: true })] }, { text: 'It works.' }],
  'Work in the background': [bash('sleep 1000'), { text: 'Done.' }],
  'Go on': [{ text: 'Done.' }],
}
let summaries = 0
const script: Script = (question) => {
  if (!asksForSummary(question)) return planner.script(question)
  return ++summaries === 1 ? { text: 'late', delay_ms: 100_000 } : { text: 'Summary.' }
}

/** What a conversation is created with, what brings it into its phase at the owner, and what ends that at the next owner. */
type Phase = {
  readonly fields?: Record<string, unknown>
  readonly begin: (id: string) => Promise<unknown>
  /** The default is one more message. */
  readonly end?: (id: string) => Promise<unknown>
}

const PHASES: Readonly<Record<string, Phase>> = {
  idle: { begin: (id) => sayUntilEnd(owner, id, 'Be short.') },
  'a model call': {
    async begin(id) {
      await say(owner, id, 'Write slowly.')
      await reader(id).until(({ event }) => event === 'AssistantDelta')
    },
  },
  'a tool': {
    async begin(id) {
      await say(owner, id, 'Take long.')
      await reader(id).until(({ event }) => event === 'ToolUse')
    },
  },
  'an approval': {
    fields: { permission_mode: 'default', confirmation_mode: true },
    async begin(id) {
      await say(owner, id, 'Ask first.')
      await reader(id).until(({ event }) => event === 'RequestOpened')
    },
    async end(id) {
      const open = () => requestsOf(asked.call, id, 'permission')
      const [request] = await until('the request at the next owner', async () => {
        const found = await open().catch(() => [])
        return found.length > 0 && found
      })
      await approve(asked.call, id, request.request_id)
      await untilCompleted(id)
    },
  },
  'a client hook': {
    async begin(id) {
      await say(owner, id, 'Ask first.')
      await reader(id).until(({ event }) => event === 'HookRequest')
    },
    async end(id) {
      const { data } = await reader(id).until(({ event }) => event === 'HookRequestEnded')
      expect(data).toMatchObject({ reason: 'interrupted' })
      await goOn(id)
    },
  },
  'a webhook': {
    async begin(id) {
      const held = Promise.withResolvers<void>()
      receiver.answer = async ({ body }) => {
        if (body.event.type !== 'Result' || isKilled) return 204
        await held.promise
        return 204
      }
      expect((await owner.call('POST', `/conversations/${id}/callbacks`, { url: receiver.url })).status).toBe(201)
      await sayUntilEnd(owner, id, 'Be short.')
      await receiver.untilReceived((all) => all.some(({ body }) => body.event.type === 'Result'))
    },
    async end(id) {
      await goOn(id)
      const events = await eventsAt(asked, id)
      await receiver.untilReceived((all) => all.some(({ body }) => body.event.seq === events.at(-1)?.seq))
      expect(firstSeqsOf(receiver.received)).toEqual(events.slice(1).map(({ seq }) => seq))
      const ofResult = receiver.received.filter(({ body }) => body.event.seq === resultIn(events).seq)
      expect(ofResult.length).toBeGreaterThan(1)
      expect(new Set(ofResult.map((one) => one.id)).size).toBe(1)
    },
  },
  'a fork': {
    async begin(id) {
      await sayUntilEnd(owner, id, 'Be short.')
      const { workdir } = (await owner.call('GET', `/conversations/${id}`)).body
      await mkdir(join(workdir, 'many'))
      const names = Array.from({ length: 10_000 }, (_, i) => join(workdir, 'many', String(i)))
      for (const name of names) await writeFile(name, 'text')
    },
    async end(id) {
      expect(await forking, 'no fork was acknowledged').toBeUndefined()
      const again = await fork(asked, id)
      expect([again.status, again.body.title], JSON.stringify(again.body)).toEqual([201, FORK])
      const { items } = (await asked.call('GET', '/conversations?limit=100')).body
      expect(items.filter(({ title }: { title?: string }) => title === FORK)).toHaveLength(1)
      await goOn(id)
    },
  },
  'a compaction': {
    async begin(id) {
      for (const text of ['Be long.', 'Be long.']) await sayUntilEnd(owner, id, text)
      void owner.call('POST', `/conversations/${id}/compact`).catch(() => {})
      await until('a request for a summary', async () => summaries > 0)
    },
    async end(id) {
      expect((await eventsAt(asked, id)).filter(({ type }) => type === 'Condensation')).toEqual([])
      await goOn(id)
      expect((await asked.call('POST', `/conversations/${id}/compact`)).status).toBe(200)
    },
  },
  'subagents in the background': {
    fields: { agents: { worker: { description: 'Works.', prompt: 'You are a worker.' } }, tools: ['Bash'] },
    async begin(id) {
      await sayUntilEnd(owner, id, 'Delegate.')
      await until('a call of the subagent', async () => ofSubagents(await eventsAt(owner, id), 'ToolUse').length > 0)
    },
    async end(id) {
      await until('the end of the subagent', async () => ofSubagents(await eventsAt(asked, id), 'Result').length > 0)
      await goOn(id)
    },
  },
}

const FORK = 'the fork'
let place: string
let database: TestDatabase
let stage: Stage
let owner: TestServer
let asked: TestServer
let receiver: Receiver
let isKilled = false
let forking: Promise<Answer | undefined>
/** By phase. */
const ids = new Map<string, string>()
/** By conversation: of a client of the other instance, and what the owner has acknowledged before it died. */
const readers = new Map<string, Subscriber>()
const acknowledged = new Map<string, readonly Typed[]>()

beforeAll(async () => {
  place = await mkdtemp(join(tmpdir(), 'killed-owner-'))
  database = await createDatabase()
  receiver = await startReceiver()
  const shared = join(place, 'shared')
  const env = { ...instanceOn(database), OPENHANDS_CALLBACK_ALLOW: '127.0.0.1', OPENHANDS_SHARED_DIR: shared }
  stage = await setStage(script, { env })
  owner = stage.server
  asked = await startServer({ env })
  const begin = async ([name, phase]: [string, Phase]) => {
    const id = await stage.create(phase.fields)
    ids.set(name, id)
    const hooks = { PreToolUse: [{ matcher: 'Bash', hooks: [{ id: 'guard' }] }] }
    const isHooked = name === 'a client hook'
    if (isHooked) await owner.call('PUT', `/conversations/${id}/client-hooks/policy`, { hooks })
    const query = isHooked ? '&hook_client=policy' : ''
    readers.set(id, await subscribe(asked.url, `/conversations/${id}/events/stream?after_seq=0&deltas=true${query}`))
    await phase.begin(id)
  }
  await Promise.all(Object.entries(PHASES).map(begin))
  for (const id of ids.values()) acknowledged.set(id, await eventsAt(owner, id))
  const source = ids.get('a fork')!
  forking = fork(owner, source).catch(() => undefined)
  await until('a fork that copies', async () => (await database.query(COPYING)).length > 0)
  isKilled = true
  await owner.stop('SIGKILL')
})
afterAll(async () => {
  for (const stream of readers.values()) stream.close()
  for (const each of [asked, stage, receiver, database]) await each[Symbol.asyncDispose]()
  await rm(place, { recursive: true, force: true, maxRetries: 3 })
})

const COPYING = 'select from conversations where is_copying'
const fork = (server: TestServer, id: string) =>
  server.call('POST', `/conversations/${id}/fork`, { title: FORK }, { 'idempotency-key': 'one-fork' })

// oxlint-disable-next-line typescript/no-explicit-any -- events as they come over HTTP
type Typed = any

const eventsAt = async (server: TestServer, id: string): Promise<Typed[]> =>
  (await server.call('GET', `/conversations/${id}/events?limit=1000`)).body.items
const reader = (id: string) => readers.get(id)!
const resultIn = (events: readonly Typed[]) => events.find(({ type }) => type === 'Result')
const durable = ({ frames }: Subscriber) => frames.filter(({ data }) => 'seq' in data).map(({ data }) => data)

async function say(server: TestServer, id: string, content: string): Promise<Typed> {
  const post = () =>
    server.call('POST', `/conversations/${id}/messages`, { message: { role: 'user', content }, run: true })
  const { status, body } = await post()
  expect(status, JSON.stringify(body)).toBe(202)
  return body
}
async function sayUntilEnd(server: TestServer, id: string, content: string): Promise<void> {
  const { seq } = await say(server, id, content)
  await reader(id).until(({ event, data }) => event === 'Result' && data.seq > seq)
  await reader(id).until(({ event, data }) => event === 'StatusUpdate' && data.seq > seq && data.status === 'idle')
}
const untilCompleted = (id: string) =>
  until('a completed run at rest', async () => {
    const isIdle = (await asked.call('GET', `/conversations/${id}`)).body.status === 'idle'
    return isIdle && ofMain(await eventsAt(asked, id), 'Result').at(-1)?.stop_reason === 'completed'
  })
/** After the takeover, the conversation works as any other one. */
async function goOn(id: string): Promise<void> {
  await until('the next owner', async () => (await asked.call('GET', `/conversations/${id}/files`)).status === 200)
  await until('rest', async () => (await asked.call('GET', `/conversations/${id}`)).body.status !== 'running')
  await sayUntilEnd(asked, id, 'Go on.')
  await untilCompleted(id)
}

test.each(Object.entries(PHASES))(
  'the owner is killed in %s: nothing acknowledged is lost, and each reader, call and run gets what it is to get, once',
  async (name, { end = goOn }) => {
    const id = ids.get(name)!
    await end(id)
    const events = await eventsAt(asked, id)
    const before = acknowledged.get(id) ?? []
    expect(before.length).toBeGreaterThan(0)
    expect(events.slice(0, before.length)).toEqual(before)
    // No gap, one result per call, one `Result` per run.
    expect(brokenRules(events)).toEqual([])
    await reader(id).until(({ data }) => data.seq === events.at(-1).seq)
    expect(durable(reader(id))).toEqual(events)
  },
)
