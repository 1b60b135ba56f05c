/** A deleted conversation is gone for everybody, whatever was happening to it when it was deleted. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { CreateConversation, ForkConversation, ListConversations } from '../../../src/contract/conversation.ts'
import type { Problem } from '../../../src/contract/problem.ts'
import { uuid7 } from '../../../src/lib/uuid7.ts'
import { createJsonlStore } from '../../../src/storage/files/log/jsonl-store.ts'
import { effort } from '../../support/patience.ts'
import type { BenchLogs } from '../fixtures.ts'
import { setBench, userText } from '../fixtures.ts'
import { expectGone } from '../gone.ts'
import { takeTime } from '../../support/take-time.ts'

/** A store whose logs are opened and copied only when a test lets them. */
function slowStore() {
  const home = { directory: '' }
  const entered = { open: 0, copy: 0 }
  let wait: () => Promise<unknown> = async () => {}
  const store: BenchLogs = {
    home,
    create: (...args) => createJsonlStore(home).create(...args),
    async copy(...args) {
      entered.copy++
      await wait()
      return await createJsonlStore(home).copy(...args)
    },
    async open(id) {
      entered.open++
      await wait()
      return await createJsonlStore(home).open(id)
    },
    delete: (id) => createJsonlStore(home).delete(id),
  }
  return { store, entered, waitFor: (done: () => Promise<unknown>) => (wait = done) }
}

async function setSlowBench(options: Parameters<typeof setBench>[0] = {}) {
  const disk = slowStore()
  const bench = await setBench({ logs: disk.store, ...options })
  return { bench, disk, [Symbol.asyncDispose]: () => bench[Symbol.asyncDispose]() }
}

const codeOf = (error: unknown) => (error as Problem).code

test('one that is deleted while it is being opened stays deleted, also after a restart', async () => {
  await using slow = await setSlowBench()
  const { bench, disk } = slow
  const id = await bench.create()
  await bench.restart()
  const gate = Promise.withResolvers<void>()
  disk.waitFor(() => gate.promise)
  const opening = bench.manager.open(id).catch(codeOf)
  await expect.poll(() => disk.entered.open).toBe(1)
  const deleting = bench.manager.delete(id)
  await expect.poll(() => bench.manager.ownerOf(id)).toBeUndefined()
  const again = bench.manager.open(id).catch(codeOf)
  const sameId = bench.create({ id }).catch(codeOf)
  gate.resolve()
  await deleting
  expect(await Promise.all([opening, again, sameId])).toEqual(Array(3).fill('conversation_deleted'))
  await expectGone(bench, id)
  await bench.restart()
  await expectGone(bench, id)
})

test('a fork of one that is being deleted answers that it was deleted, and leaves nothing', async () => {
  await using slow = await setSlowBench()
  const { bench, disk } = slow
  const id = await bench.create()
  for (const workdir of ['copy', 'share'] as const) {
    const source = workdir === 'copy' ? id : await bench.create()
    const gate = Promise.withResolvers<void>()
    disk.waitFor(() => gate.promise)
    disk.entered.copy = 0
    const forking = bench.manager.fork(source, ForkConversation.parse({ workdir })).catch(codeOf)
    await expect.poll(() => disk.entered.copy).toBe(1)
    await bench.manager.delete(source)
    gate.resolve()
    expect(await forking).toBe('conversation_deleted')
    await expectGone(bench, source)
  }
  expect(bench.manager.count({}).count).toBe(0)
  expect(await readdir(bench.workdirBase)).toEqual([])
  expect(await readdir(join(bench.dataDir, 'sessions'))).toEqual([])
})

test('two creates with the id of a deleted one both answer that it was deleted', async () => {
  await using bench = await setBench()
  const id = await bench.create()
  await bench.manager.delete(id)
  const both = [bench.create({ id }).catch(codeOf), bench.create({ id }).catch(codeOf)]
  expect(await Promise.all(both)).toEqual(Array(2).fill('conversation_deleted'))
})

/** What requests do with conversations; each `after` so many milliseconds. */
type Request = { kind: 'open' | 'post' | 'delete' | 'create' | 'fork' | 'share' | 'list'; at: number; after: number }

const KEYS = ['a', 'b', 'c']
const requests: fc.Arbitrary<Request[]> = fc.array(
  fc.record({
    kind: fc.constantFrom('open', 'open', 'post', 'delete', 'delete', 'create', 'fork', 'share', 'list'),
    at: fc.nat(KEYS.length - 1),
    after: fc.nat(6),
  }),
  { minLength: 10, maxLength: 30, size: 'max' },
)

/** What random plans may not come to, if they are few. */
const ONE_OF_EACH: Request[] = [
  { kind: 'open', at: 0, after: 0 },
  { kind: 'fork', at: 0, after: 0 },
  { kind: 'delete', at: 1, after: 0 },
]

test('property: whatever happens at the same time, a deleted conversation is gone, and only once', async () => {
  const seen = { deleted: 0, opened: 0, forked: 0 }
  await fc.assert(
    fc.asyncProperty(requests, fc.nat(2), async (plan, restarts) => {
      await using slow = await setSlowBench({ manager: { idle: { afterMs: 2, isShort: () => false } } })
      const { bench, disk } = slow
      disk.waitFor(() => takeTime(3))
      const llm_config = { model: 'scripted', base_url: bench.model.baseUrl, api_key: 'key', num_retries: 0 }
      const ids = await Promise.all(KEYS.map((key) => bench.create({ id: uuid7(), metadata: { key } })))
      const deleted = new Set<string>()
      const carryOut = async ({ kind, at }: Request) => {
        const id = ids[at]!
        const wasDeleted = deleted.has(id)
        const { manager } = bench
        // As a request does. Between requests it is closed.
        const release = manager.hold(id)
        try {
          if (kind === 'open') await manager.open(id)
          else if (kind === 'post') await (await manager.open(id)).post(userText('hello'))
          else if (kind === 'delete') {
            await manager.delete(id)
            expect(deleted.has(id), 'one of several deletes succeeds').toBe(false)
            deleted.add(id)
            seen.deleted++
          } else if (kind === 'create') await manager.create(CreateConversation.parse({ id, llm_config }))
          else if (kind === 'list') {
            const { items } = await manager.list(ListConversations.parse({}))
            expect(items.filter((item) => item.status === 'error')).toEqual([])
            if (wasDeleted) expect(items.map((item) => item.id)).not.toContain(id)
          } else {
            await manager.fork(id, ForkConversation.parse({ workdir: kind === 'share' ? 'share' : 'copy' }))
            seen.forked++
          }
          if (kind !== 'list') expect(wasDeleted, `${kind} of a deleted conversation`).toBe(false)
          seen.opened++
        } catch (error) {
          if (wasDeleted) expect(codeOf(error), kind).toBe('conversation_deleted')
          else expect(codeOf(error)).toMatch(/^conversation_(deleted|exists)$/)
        } finally {
          release()
        }
      }
      for (let life = 0; life <= restarts; life++) {
        const part = plan.slice((plan.length / (restarts + 1)) * life, (plan.length / (restarts + 1)) * (life + 1))
        await Promise.all(
          part.map(async (request) => {
            await takeTime(request.after)
            await carryOut(request)
          }),
        )
        for (const id of deleted) await expectGone(bench, id)
        await bench.restart()
        for (const id of deleted) await expectGone(bench, id)
      }
      expect(bench.logged.filter((line) => JSON.parse(line).level >= 50)).toEqual([])
    }),
    { numRuns: effort(8, 150), examples: [[ONE_OF_EACH, 0]] },
  )
  for (const [what, times] of Object.entries(seen)) expect(times, what).toBeGreaterThan(0)
})
