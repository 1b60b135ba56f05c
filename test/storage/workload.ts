/** What a server does with its storage until it is killed, and what must be there afterwards. */
import { writeSync } from 'node:fs'
import { expect } from 'vitest'
import { Problem } from '../../src/contract/problem.ts'
import type { Storage } from '../../src/storage/storage.ts'
import { uuid7 } from '../../src/lib/uuid7.ts'
import { append, message, readAll } from '../events/fixtures.ts'

/** Printed once it is durable. */
type Acknowledged = { readonly id: string; readonly step: Step; readonly n: number }
type Step = 'made' | 'active' | 'due' | 'secrets' | 'callbacks' | 'command' | 'shared' | 'key' | 'deleted'

const ROUNDS = 3
const HASH = '0123456789abcdef'

/** Several conversations at once, one after another, each of them through all that can be stored. */
export async function work(storage: Storage): Promise<never> {
  const live = async (): Promise<void> => {
    const own = storage.conversation(uuid7())
    const { id } = own
    const tell = (step: Step, n = 0) => writeSync(1, `${JSON.stringify({ id, step, n } satisfies Acknowledged)}\n`)
    await own.reserve()
    const log = await own.createLog({ env: { n: '0' } })
    await append(log, message('first'))
    tell('made')
    await Promise.all([storage.active.set(id).then(() => tell('active')), storage.due.set(id).then(() => tell('due'))])
    for (let n = 1; n <= ROUNDS; n++) {
      void storage.snapshots.write(own.id, { n })
      await own.writeSecrets({ env: { n: String(n) } })
      tell('secrets', n)
      await own.callbacks.write({ n, padding: 'x'.repeat(5000) })
      tell('callbacks', n)
      await own.commands.write({ id, keyHash: HASH }, { n, padding: 'x'.repeat(5000) }, { durable: true })
      tell('command', n)
    }
    await storage.sharedWorkdirs.add(`/work/${id}`, [id])
    tell('shared')
    await storeKey(storage, id)
    tell('key')
    await log.close()
    if (Number.parseInt(id.slice(-1), 16) % 2 === 0) return
    await storage.deletions.mark(id, { key: 'k', bodyHash: 'h', id, at: new Date().toISOString() })
    tell('deleted')
    await own.remove()
  }
  const liveOn = async (): Promise<never> => {
    for (;;) await live()
  }
  return await Promise.race([liveOn(), liveOn(), liveOn()])
}

/** Others change the table at the same time. */
async function storeKey({ apiKeys }: Storage, id: string): Promise<void> {
  while ((await apiKeys.change(await apiKeys.version(), id, { id })) === undefined);
}

/** Everything that was acknowledged is there, or something newer; and what is there is whole. */
export async function expectAll(storage: Storage, output: string): Promise<Record<Step, number>> {
  const lines = output.split('\n').slice(0, -1)
  const all = lines.map((line) => JSON.parse(line) as Acknowledged)
  const acknowledged = new Set(all.map(({ id }) => id))
  const deleted = new Set(await storage.deletions.ids())
  const [active, due] = [new Set(await storage.active.ids()), new Set(await storage.due.ids())]
  const keys = new Set((await storage.apiKeys.read()).keys.map((key) => key.id))
  const counts = { made: 0, active: 0, due: 0, secrets: 0, callbacks: 0, command: 0, shared: 0, key: 0, deleted: 0 }
  for (const { id, step, n } of all) {
    counts[step]++
    if (step === 'active') expect(active).toContain(id)
    if (step === 'due') expect(due).toContain(id)
    if (step === 'deleted') expect(deleted).toContain(id)
    if (step === 'shared') expect(await storage.sharedWorkdirs.has(`/work/${id}`, id)).toBe(true)
    if (step === 'key') expect(keys).toContain(id)
    if (deleted.has(id)) continue
    const own = storage.conversation(id)
    if (step === 'made') expect(await messagesOf(storage, id)).toBe(1)
    if (step === 'secrets') expect(Number((await own.readSecrets())['env']!['n'])).toBeGreaterThanOrEqual(n)
    if (step === 'callbacks') expect(nOf(await own.callbacks.read())).toBeGreaterThanOrEqual(n)
    if (step === 'command') expect(nOf(await own.commands.read({ id, keyHash: HASH }))).toBeGreaterThanOrEqual(n)
  }
  for (const id of await storage.ids()) {
    if (deleted.has(id)) continue
    const own = storage.conversation(id)
    const callbacks = await own.callbacks.read()
    if (callbacks !== undefined) expect(nOf(callbacks)).toBeGreaterThan(0)
    // Encrypted with a key that the next process has. Without an event the creation was cut off, maybe in this file.
    if (acknowledged.has(id) || (await hasEvents(storage, id))) await own.readSecrets()
  }
  expect((await storage.deletions.keys(0)).map(({ id }) => id).toSorted()).toEqual(
    expect.arrayContaining([...deleted].toSorted()),
  )
  return counts
}

/** A server removes what has no events when it starts. */
async function hasEvents(storage: Storage, id: string): Promise<boolean> {
  try {
    await using view = await storage.view(id)
    return view.head > 0
  } catch (error) {
    if (error instanceof Problem && error.code === 'conversation_not_found') return false
    throw error
  }
}

async function messagesOf(storage: Storage, id: string): Promise<number> {
  await using view = await storage.view(id)
  return (await readAll(view)).length
}

const nOf = (value: unknown): number => (value as { n: number }).n
