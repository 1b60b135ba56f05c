/**
 * SIGSTOP past the TTL, takeover, SIGCONT: an owner stops while many of its conversations work, each at a random moment of its
 * run, and continues when another instance has them. `MOMENTS` says how many, `SEED` which; a failure names its seed.
 */
import { chmod, mkdtemp, readFile, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'
import type { Event } from '../../src/contract/events/event.ts'
import type { Script } from '../../src/llm/scripted/script.ts'
import { lateEventsIn, notesOf, urlOf, witnessAppends } from '../support/append-witness.ts'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { instanceOn } from '../support/instances.ts'
import { brokenRules } from '../support/log-rules.ts'
import { PATIENCE_MS, effort } from '../support/patience.ts'
import type { TestDatabase } from '../support/postgres.ts'
import { createDatabase } from '../support/postgres.ts'
import type { Random } from '../support/random.ts'
import { createRandom } from '../support/random.ts'
import type { Received, Receiver } from '../support/receiver.ts'
import { startReceiver } from '../support/receiver.ts'
import type { TestServer } from '../support/server.ts'
import { startServer } from '../support/server.ts'
import { takeTime } from '../support/take-time.ts'
import { until } from '../support/until.ts'

const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000)
const MOMENTS = Number(process.env['MOMENTS'] ?? effort(6, 200))
/** Conversations that work when their owner is stopped: as many moments. */
const AT_ONCE = 20
/** A run takes about twice as long. */
const LATEST_MS = 2000
const ISOLATIONS = ['none', 'bubblewrap'] as const

/** Each call has its own file of times, and the first one leaves a process behind. A call that is interrupted is not repeated. */
const script: Script = ({ messages }) => {
  const last = messages.findLastIndex(({ role }) => role === 'user')
  const step = messages.slice(last).filter(({ role }) => role === 'assistant').length
  const ticks = (name: string, count: number) =>
    `for i in $(seq ${count}); do echo $EPOCHREALTIME >> ${name}; sleep 0.1; done`
  const name = `ticks-${messages.length}`
  if (step === 0) return bash(`(setsid bash -c '${ticks(`${name}-left`, 100)}' >/dev/null 2>&1 &); ${ticks(name, 4)}`)
  if (step < 5) return { ...bash(ticks(name, step * 2)), chunk_delay_ms: 20 }
  return { text: 'That was all of it, said slowly.', chunk_delay_ms: 30 }
}

type Round = {
  readonly stage: Stage
  readonly database: TestDatabase
  readonly random: Random
  readonly receiver: Receiver
  readonly victim: TestServer
  readonly other: TestServer
  readonly moments: number
}

for (const isolation of ISOLATIONS)
  test(
    `an owner that is stopped past the TTL and continued stores, runs and sends nothing more, at ${MOMENTS} moments, seed ${SEED} (${isolation})`,
    { timeout: 2 * PATIENCE_MS + MOMENTS * 10_000 },
    async () => {
      await using opened = new AsyncDisposableStack()
      const place = await mkdtemp(join(tmpdir(), 'stopped-owners-'))
      opened.defer(() => rm(place, { recursive: true, force: true, maxRetries: 3 }))
      await chmod(place, 0o711)
      const database = opened.use(await createDatabase())
      const receiver = opened.use(await startReceiver())
      const envOf = (name: string) => ({
        ...instanceOn({ url: urlOf(database, name) }),
        OPENHANDS_ISOLATION: isolation,
        OPENHANDS_CALLBACK_ALLOW: '127.0.0.1',
        OPENHANDS_SHARED_DIR: join(place, 'shared'),
      })
      const stage = opened.use(await setStage(script, { env: envOf('one') }))
      await witnessAppends(database)
      const one = stage.server
      const two = opened.use(await startServer({ env: envOf('two') }))
      const random = createRandom(SEED)
      for (let left = MOMENTS, round = 0; left > 0; left -= AT_ONCE, round++) {
        const [victim, other] = round % 2 === 0 ? [one, two] : [two, one]
        const moments = Math.min(left, AT_ONCE)
        await stopPastTtl({ stage, database, random, receiver, victim, other, moments })
      }
    },
  )

async function stopPastTtl(round: Round): Promise<void> {
  const { database, random, receiver, victim, other, moments } = round
  const ids: string[] = []
  while (ids.length < moments) ids.push(await create(round))
  const gate = Promise.withResolvers<void>()
  const begun = Promise.all(
    ids.map(async (id) => {
      await takeTime(random.below(LATEST_MS))
      await post(victim, id, 'begin')
    }),
  )
  await takeTime(random.below(LATEST_MS))
  const unanswered: Received[] = []
  receiver.answer = async (one) => {
    unanswered.push(one)
    await gate.promise
    return 204
  }
  await until('a delivery without an answer', async () => unanswered.length > 0)
  const { pid } = victim
  process.kill(pid, 'SIGSTOP')
  receiver.answer = () => 204
  // The owner does not read the answer before it continues.
  gate.resolve()
  const whileStopped = ids.map((id) => post(victim, id, 'while it is stopped'))
  const endedAt = await until('the end of its lease', async () => {
    const [row] = await database.query(ENDED_AT, [pid])
    return row && Number(row['at'])
  })
  const untilAtRest = () => until('the end of all runs', () => areAtRest(other, ids))
  const isLate = random.below(3) === 0
  if (isLate) await untilAtRest()
  else await takeTime(random.below(LATEST_MS))
  process.kill(pid, 'SIGCONT')
  expect(await victim.exited()).toBe(1)
  await Promise.all([begun, ...whileStopped])
  await untilAtRest()
  for (const one of unanswered) await receiver.untilReceived((all) => all.filter(({ id }) => id === one.id).length > 1)
  for (const id of ids) await check(round, id, endedAt)
  await victim.restart()
}

const ENDED_AT = 'select extract(epoch from ended_at) as at from incarnations where pid = $1 and ended_at is not null'

async function create({ stage, victim, receiver }: Round): Promise<string> {
  const llm_config = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
  const { body, status } = await victim.call('POST', '/conversations', { llm_config, resume_on_start: true })
  expect(status, JSON.stringify(body)).toBe(201)
  const callback = await victim.call('POST', `/conversations/${body.id}/callbacks`, { url: receiver.url })
  expect(callback.status, JSON.stringify(callback.body)).toBe(201)
  return body.id
}

/** The answer may be lost with the server. */
async function post(server: TestServer, id: string, content: string): Promise<void> {
  const body = { message: { role: 'user', content }, run: true }
  await server.call('POST', `/conversations/${id}/messages`, body).catch(() => undefined)
}

async function areAtRest(server: TestServer, ids: readonly string[]): Promise<boolean> {
  const answers = await Promise.all(ids.map((id) => server.call('GET', `/conversations/${id}`)))
  return answers.every(({ status, body }) => status === 200 && body.status === 'idle')
}

async function check({ database, receiver, other }: Round, id: string, endedAt: number): Promise<void> {
  const { body: page } = await other.call('GET', `/conversations/${id}/events?limit=1000`)
  const events = page.items as Event[]
  const notes = await notesOf(database, id)
  const what = `seed ${SEED}, conversation ${id}`
  expect(brokenRules(events), what).toEqual([])
  expect(lateEventsIn(notes), what).toEqual([])
  const storedBy = new Map(
    notes.flatMap(({ kind, ...note }) => (kind === 'event' ? [[note.number, note.instance]] : [])),
  )
  expect([...storedBy.keys()], what).toEqual(events.map(({ seq }) => seq))

  const former = notes[0]!.instance
  const ofFormer = events.filter((event) => event.type === 'ToolUse' && storedBy.get(event.seq) === former)
  const { workdir } = (await other.call('GET', `/conversations/${id}`)).body
  for (const path of (await readdir(workdir)).map((name) => join(workdir, name))) {
    const call = new RegExp(String.raw`\b${basename(path).replace('-left', '')}\b`)
    const times = (await readFile(path, 'utf8')).trim().split('\n').map(Number)
    if (ofFormer.some((event) => call.test(JSON.stringify(event))))
      expect(
        times.filter((time) => time > endedAt),
        `${what}, ${path}`,
      ).toEqual([])
  }

  // The first event is older than the callback. A conversation whose message came too late has no other one.
  const seqs = events.slice(1).map(({ seq }) => seq)
  const delivered = () => receiver.received.filter(({ body }) => body.conversation_id === id)
  await receiver.untilReceived(() => new Set(delivered().map(({ body }) => body.event.seq)).size === seqs.length)
  const idsBySeq = Map.groupBy(delivered(), ({ body }) => body.event.seq as number)
  expect([...idsBySeq.keys()], what).toEqual(seqs)
  for (const [seq, same] of idsBySeq)
    expect([...new Set(same.map((one) => one.id))], `${what}, event ${seq}`).toEqual([same[0]!.id])
}
