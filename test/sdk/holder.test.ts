/** Another process holds the data directory, and ends while a query works. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import type { Event, QueryEvent, QueryOptions } from '../../src/index.ts'
import { query, run } from '../../src/index.ts'
import { acquireHost } from '../../src/sdk/local/shared-host.ts'
import { KEY, startServer } from '../support/server.ts'
import { resultsIn, setSdkStage } from './stage.ts'

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

describe('a holder of the directory', async () => {
  const server = await startServer({ prepare: keepSameKey })
  afterAll(() => server[Symbol.asyncDispose]())

  test.each([
    { how: 'ends', reason: 'paused' },
    { how: 'is killed', reason: 'server_restart' },
  ])('that is a program is used; when it $how the query becomes the holder and continues its run', async (each) => {
    const place = { ...options, persistDir: join(stage.home, each.reason) }
    await using holder = await startProgram(place)
    const events: Event[] = []
    // Slow only once.
    const prompt = `slow once ${'words '.repeat(60)}${each.how}`
    const asking = query({ prompt, options: { ...place, includePartialMessages: true } })
    for await (const event of asking) {
      if ('seq' in event) events.push(event)
      if (event.type !== 'AssistantDelta') continue
      if (each.how === 'ends') holder.end()
      else holder.kill()
    }
    const rest = { stop_reason: 'completed', final_text: prompt }
    expect(resultsIn(events)).toMatchObject([{ stop_reason: each.reason }, rest])
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, at) => at + 1))
    const resumed = await run({ prompt: 'hello', options: { ...place, resume: asking.sessionId } })
    expect(resumed.finalText).toBe('hello')
  })

  test('that is a server is waited for: it finds its directory free when it is restarted', async () => {
    const events: QueryEvent[] = []
    let restarted = Promise.resolve<unknown>(undefined)
    const place = { ...options, persistDir: server.dataDir }
    for await (const event of query({ prompt: `slow ${'words '.repeat(40)}`, options: place })) {
      events.push(event)
      if (event.type === 'StatusUpdate' && event.status === 'running') restarted = server.restart('SIGKILL')
    }
    await restarted
    expect(resultsIn(events)).toMatchObject([{ stop_reason: 'server_restart' }])
    expect((await server.call('GET', '/conversations/count')).body).toEqual({ count: 1 })
  })

  test('may be replaced by one with another credential', async () => {
    const host = acquireHost(server.dataDir)
    const count = async () => (await host.fetch(`${host.baseUrl}/conversations/count`)).status
    const first = await host.server()
    expect(await count()).toBe(200)
    await server.restart()
    expect(await count()).toBe(200)
    const second = await host.server()
    expect([first.isOwn, second.isOwn, first.credential === second.credential]).toEqual([false, false, false])
    await host.release()
  })
})
