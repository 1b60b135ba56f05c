/** Another process holds the data directory, and ends while queries work. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import type { Event, QueryOptions } from '../../src/index.ts'
import { query, run, sessions } from '../../src/index.ts'
import { KEY, startServer } from '../support/server.ts'
import { setSdkStage } from './stage.ts'

const stage = await setSdkStage()
afterAll(() => stage[Symbol.asyncDispose]())
const { options } = stage

/** A server that is started with a key, and queries that use the kept one, can read the same secrets. */
async function keepSameKey(dataDir: string): Promise<void> {
  await mkdir(dataDir, { mode: 0o700 })
  await writeFile(join(dataDir, 'master-key'), KEY, { mode: 0o600 })
}

/** Resolves when it holds its directory. */
async function startProgram(place: QueryOptions) {
  const program = join(import.meta.dirname, 'children/holds-directory.ts')
  const child = spawn(process.execPath, [program, JSON.stringify(place)], { stdio: ['pipe', 'pipe', 'inherit'] })
  const closed = once(child, 'close')
  const hasWritten = once(child.stdout, 'data')
  await Promise.race([hasWritten, closed.then(() => Promise.reject(new Error('The program has ended.')))])
  child.stdout.resume()
  return {
    end: () => void child.stdin.end(),
    kill: () => void child.kill('SIGKILL'),
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await closed
    },
  }
}

/** Slow only once: `how` makes it another prompt. */
const slowOnce = (how: string) => `slow once ${'words '.repeat(60)}${how}`

/** Calls `end` when the first text arrives. Returns the stored events and the error. */
async function askUntilLost(place: QueryOptions, prompt: string, end: () => unknown) {
  const events: Event[] = []
  let hasText = false
  const asking = query({ prompt, options: { ...place, includePartialMessages: true } })
  try {
    for await (const event of asking) {
      if ('seq' in event) events.push(event)
      if (event.type !== 'AssistantDelta' || hasText) continue
      hasText = true
      end()
    }
  } catch (error) {
    return { events, error, sessionId: asking.sessionId! }
  }
  throw new Error('The query has not failed.')
}

const lostError = (sessionId: string) => ({
  code: 'server_lost',
  message: expect.stringContaining(`resume: "${sessionId}"`),
  details: { session_id: sessionId },
})

/** The log begins with what the query has yielded, and has no gap. */
async function expectWhole({ persistDir }: QueryOptions, sessionId: string, events: readonly Event[]) {
  const log = await Array.fromAsync(sessions({ persistDir }).read(sessionId))
  expect(log.map(({ seq }) => seq)).toEqual(log.map((_, at) => at + 1))
  expect(log.slice(0, events.length)).toEqual(events)
}

test.each(['ends', 'is killed'])(
  'when a program that holds the directory %s, a query fails and can be resumed at once',
  async (how) => {
    const place = { ...options, persistDir: join(stage.home, how) }
    await using holder = await startProgram(place)
    const prompt = slowOnce(how)
    const { events, error, sessionId } = await askUntilLost(place, prompt, how === 'ends' ? holder.end : holder.kill)
    expect(error).toMatchObject(lostError(sessionId))
    const resumed = await run({ options: { ...place, resume: sessionId } })
    expect(resumed).toMatchObject({ stopReason: 'completed', finalText: prompt, sessionId })
    await expectWhole(place, sessionId, events)
  },
)

test('all queries of a process fail, and those that are resumed share one server', async () => {
  const place = { ...options, persistDir: join(stage.home, 'several') }
  await using holder = await startProgram(place)
  const prompts = ['one', 'two', 'three'].map(slowOnce)
  let slow = 0
  const end = () => ++slow === prompts.length && holder.kill()
  const lost = await Promise.all(prompts.map((prompt) => askUntilLost(place, prompt, end)))
  expect(lost).toMatchObject(lost.map(({ sessionId }) => ({ error: lostError(sessionId) })))
  const resumed = await Promise.all(lost.map(({ sessionId }) => run({ options: { ...place, resume: sessionId } })))
  expect(resumed.map(({ finalText }) => finalText)).toEqual(prompts)
  for (const { sessionId, events } of lost) await expectWhole(place, sessionId, events)
})

describe('a server that holds the directory', async () => {
  const server = await startServer({ prepare: keepSameKey })
  afterAll(() => server[Symbol.asyncDispose]())
  const place = { ...options, persistDir: server.dataDir }

  test.each(['SIGKILL', 'SIGTERM'] as const)(
    'ends with %s and starts again: the query fails, and is resumed there',
    async (signal) => {
      let restarted: Promise<unknown> = Promise.resolve()
      const restart = () => (restarted = server.restart(signal))
      const prompt = slowOnce(signal)
      const { events, error, sessionId } = await askUntilLost(place, prompt, restart)
      expect(error).toMatchObject(lostError(sessionId))
      await restarted
      const resumed = await run({ options: { ...place, resume: sessionId } })
      expect(resumed.finalText).toBe(prompt)
      expect((await server.call('GET', `/conversations/${sessionId}`)).body).toMatchObject({ status: 'idle' })
      await expectWhole(place, sessionId, events)
    },
  )
})
