/**
 * `kill -9` at random moments, again and again, on the same data. `KILLS` says how often, `SEED` which moments; a failure
 * names its seed. `npm run soak` does it a thousand times.
 */
import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isDraftName } from '../../src/lib/durable-file.ts'
import type { Script, ScriptedTurn } from '../../src/llm/scripted/script.ts'
import type { Stage } from '../support/agent.ts'
import { setStage } from '../support/agent.ts'
import type { Random } from '../support/random.ts'
import { createRandom } from '../support/random.ts'
import type { Watcher } from '../support/watcher.ts'
import { watch } from '../support/watcher.ts'
import { effort, PATIENCE_MS } from '../support/patience.ts'
import { takeTime } from '../support/take-time.ts'

const KILLS = Number(process.env['KILLS'] ?? effort(6, 1000))
const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000)
const CONVERSATIONS = 4
/** Longer than one round of the script takes, so that some kills meet conversations at rest. */
const LONGEST_RUN_MS = 400
/** A conversation that is longer is run to its end, checked, and replaced by a new one. */
const ENOUGH_EVENTS = 500

/** Every command is another one, as no two requests of a conversation are alike: one that ran twice is recognised. */
const SCRIPT: Script = ({ body }) => {
  const { messages } = body
  const last = messages.findLastIndex(({ role }) => role === 'user')
  const step = messages.slice(last).filter(({ role }) => role === 'assistant').length
  if (JSON.stringify(messages[last]).includes('come to an end')) return { text: 'This is the end.' }
  return ROUND[step]?.(messages.length) ?? { text: 'That was this round, said slowly.', chunk_delay_ms: 4 }
}

const note = (name: string, more = '') => ({
  name: 'Bash',
  arguments: { command: `echo ${name} | tee -a notes${more}` },
})
const ROUND: readonly ((at: number) => ScriptedTurn)[] = [
  (at) => ({ calls: [note(`${at}`)] }),
  (at) => ({ text: 'Two at once.', calls: [note(`${at}-a`), note(`${at}-b`, '; sleep 0.03')] }),
  (at) => ({ calls: [note(`${at}`, '; sleep 0.05')], chunk_delay_ms: 3 }),
  (at) => ({ calls: [note(`${at}`), { name: 'Nothing', arguments: {} }] }),
]

type Subject = {
  readonly id: string
  readonly watcher: Watcher
  /** What the server has acknowledged of what was posted: ids by seq. */
  readonly acknowledged: Map<number, string>
}

test(
  `${KILLS} kills at random moments, seed ${SEED}: no acknowledged event is lost, duplicated or stuck`,
  {
    timeout: 2 * PATIENCE_MS + KILLS * 20_000,
  },
  async () => {
    const random = createRandom(SEED)
    await using stage = await setStage(SCRIPT)
    const subjects: Subject[] = []
    for (let kill = 0; kill < KILLS; kill++) {
      while (subjects.length < CONVERSATIONS) subjects.push(await begin(stage))
      const work = subjects.map((subject) => post(stage, subject, 'go on', true))
      const created = await untilKilled(stage, subjects, random)
      await Promise.all(work)
      if (random.below(5) === 0) await killWhileStarting(stage, random)

      for (const id of created) expect((await stage.server.call('GET', `/conversations/${id}`)).status).toBe(200)
      for (const subject of subjects) await check(stage, subject, `kill ${kill + 1}, seed ${SEED}`)
      const old = subjects.findIndex(({ watcher }) => watcher.seen().length > ENOUGH_EVENTS)
      if (old !== -1) await runToEnd(stage, subjects.splice(old, 1)[0]!)
    }
    for (const subject of subjects) await runToEnd(stage, subject)
    const { items } = (await stage.server.call('GET', '/conversations?limit=1000')).body
    expect((await stage.server.call('GET', '/conversations/count')).body.count).toBe(items.length)
    expect(await leftFiles(stage), `left in the data directory, seed ${SEED}`).toEqual([])
  },
)

/** Files that exist only while something is done. */
async function leftFiles({ server }: Stage): Promise<string[]> {
  await server.restart()
  const names = await readdir(server.dataDir, { recursive: true })
  return names.filter((name) => isDraftName(name) || /[.]tmp$|[/](?:command|std(?:in|out|err)-\d+)$/.test(name))
}

async function begin(stage: Stage): Promise<Subject> {
  const id = await stage.create()
  return { id, watcher: watch(stage.server, id), acknowledged: new Map() }
}

/** Notes what the server acknowledges, and nothing when it is killed meanwhile. */
async function post(stage: Stage, { id, acknowledged }: Subject, content: string, run: boolean): Promise<void> {
  const message = { message: { role: 'user', content }, run }
  const posted = await stage.server.call('POST', `/conversations/${id}/messages`, message).catch(() => undefined)
  if (!posted) return
  expect(posted.status).toBe(202)
  acknowledged.set(posted.body.seq, posted.body.event_id)
}

/** Resolves when the server is up again. Returns the conversations whose creation the server confirmed meanwhile. */
async function untilKilled(stage: Stage, subjects: readonly Subject[], random: Random): Promise<string[]> {
  const created: string[] = []
  const meddling = new AbortController()
  const meddle = async () => {
    while (!meddling.signal.aborted) {
      await takeTime(random.below(60))
      if (random.below(4) === 0)
        await stage
          .create()
          .then((id) => created.push(id))
          .catch(ignoreBrokenConnection)
      else await post(stage, random.pick(subjects), 'by the way', random.below(2) === 0)
    }
  }
  const meddled = meddle()
  await momentOf(subjects, random)
  await stage.server.stop('SIGKILL')
  meddling.abort()
  await meddled
  await stage.server.restart()
  return created
}

/** After a time, or right after one of the next events: what is done between two of them takes less than a timer's tick. */
async function momentOf(subjects: readonly Subject[], random: Random): Promise<void> {
  const { watcher } = random.pick(subjects)
  const time = { isOver: false }
  void takeTime(random.below(LONGEST_RUN_MS)).then(() => (time.isOver = true))
  const events = random.below(2) === 0 ? Infinity : watcher.seen().length + 1 + random.below(12)
  while (!time.isOver && watcher.seen().length < events) await takeTime(1)
}

async function killWhileStarting({ server }: Stage, random: Random): Promise<void> {
  const before = server.pid
  const starting = server.restart('SIGKILL').catch(() => {}) // it is killed before it answers, or it is up
  while (server.pid === before) await takeTime(1)
  await takeTime(random.below(400))
  process.kill(server.pid, 'SIGKILL')
  await starting
  await server.restart('SIGKILL')
}

async function check(stage: Stage, { id, watcher, acknowledged }: Subject, when: string): Promise<void> {
  const { body } = await stage.server.call('GET', `/conversations/${id}`)
  const events = await stage.events(id)
  const message = `${when}, conversation ${id}`
  expect(
    events.map((event) => event.seq),
    message,
  ).toEqual(events.map((_, i) => i + 1))
  const seen = watcher.seen()
  expect(seen, `${message}: seen once, and unchanged`).toEqual(events.slice(0, seen.length))
  for (const [seq, eventId] of acknowledged) expect(events[seq - 1], message).toMatchObject({ id: eventId })

  expect(['paused', 'idle'], message).toContain(body.status)
  const only = (type: string) => events.filter((event) => event.type === type)
  const callsOf = (type: string): string[] => only(type).flatMap((event) => event.tool_use_ids ?? event.tool_use_id)
  const answered = callsOf('ToolResult').toSorted()
  expect(callsOf('ToolUse').toSorted(), `${message}: one result a call`).toEqual(answered)
  expect(callsOf('AssistantMessage').toSorted(), `${message}: no answer without all of its calls`).toEqual(answered)
  const runs = only('StatusUpdate').filter((event) => event.status === 'running')
  expect(
    only('Result').map((event) => event.run_id),
    `${message}: one result a run`,
  ).toEqual(runs.map((event) => event.run_id))
  await checkNotes(body.workdir, only('ToolResult'), message)
}

type Result = { readonly is_error: boolean; readonly output: { readonly stdout: string } }

/** What the commands did: each at most once, and at all if its result says so. */
async function checkNotes(workdir: string, results: readonly Result[], message: string): Promise<void> {
  const notes = (await readFile(join(workdir, 'notes'), 'utf8').catch(() => '')).split('\n').slice(0, -1)
  expect(new Set(notes).size, `${message}: no command ran twice`).toBe(notes.length)
  const printed = results.flatMap(({ is_error, output }) => (is_error ? [] : [output.stdout.trim()]))
  expect(notes, message).toEqual(expect.arrayContaining(printed))
}

async function runToEnd(stage: Stage, subject: Subject): Promise<void> {
  const run = await stage.say(subject.id, 'come to an end')
  const result = run.find((event) => event.type === 'Result')
  expect(result).toMatchObject({ stop_reason: 'completed', final_text: 'This is the end.' })
  await expect.poll(() => subject.watcher.seen().length).toBeGreaterThanOrEqual(result.seq)
  await subject.watcher.stop()
  await check(stage, subject, `at the end, seed ${SEED}`)
  expect((await stage.server.call('DELETE', `/conversations/${subject.id}`)).status).toBe(204)
}

function ignoreBrokenConnection(error: unknown): void {
  if (!(error instanceof TypeError)) throw error
}
