/** The records of commands on disk: found again, bounded, and never at the cost of one that still counts. */
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { CommandRecord } from '../../../src/workspace/exec/command-record.ts'
import { CommandRecords } from '../../../src/workspace/exec/command-records.ts'
import { CommandRecordFiles } from '../../../src/storage/files/command-record-files.ts'
import { uuid7 } from '../../../src/lib/uuid7.ts'

const DAY_MS = 24 * 60 * 60 * 1000
const PLENTY = { records: 1000, outputBytes: 1_000_000 }

async function makeDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'command-records-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  return directory
}

function recordOf(id: string, key?: string): CommandRecord {
  const text = { command: 'true', session_id: 'default', stdout: '', stderr: '' }
  const state = { status: 'exited' as const, exit_code: 0, background: false, truncated: false, timed_out: false }
  const idempotency = key === undefined ? {} : { idempotency: { key, bodyHash: `hash of ${key}` } }
  return { command_id: id, created_at: new Date().toISOString(), ...text, ...state, ...idempotency }
}

async function add(records: CommandRecords, { key, ageMs = 0, output = 0 }: Partial<Added> = {}): Promise<string> {
  await records.makeRoom(() => false)
  const id = uuid7(Date.now() - ageMs)
  await records.write(recordOf(id, key), { durable: key !== undefined })
  await writeFile(records.outputPath(id, 'stdout'), Buffer.alloc(output))
  records.countOutput(output)
  return id
}
type Added = { key: string; ageMs: number; output: number }

test('are found by id and by key, also after reopening', async () => {
  const directory = await makeDirectory()
  const records = new CommandRecords(new CommandRecordFiles(directory), PLENTY)
  const plain = await add(records)
  const keyed = await add(records, { key: 'one' })
  await records.write({ ...recordOf(keyed, 'one'), exit_code: 7 }, { durable: true })
  const next = new CommandRecords(new CommandRecordFiles(directory), PLENTY)
  expect(await next.ids()).toEqual([keyed, plain])
  expect(await next.read(plain)).toMatchObject({ command_id: plain })
  expect(await next.withKey('one')).toMatchObject([{ command_id: keyed, exit_code: 7 }])
  expect(await next.withKey('two')).toEqual([])
  expect(await next.read(uuid7())).toBeUndefined()
})

test('that a crash has interrupted during the write do not exist', async () => {
  const directory = await makeDirectory()
  const records = new CommandRecords(new CommandRecordFiles(directory), PLENTY)
  const id = await add(records)
  await writeFile(join(directory, `${uuid7()}.json.0123456789ab`), '{"comm')
  expect(await records.ids()).toEqual([id])
  const torn = uuid7()
  await writeFile(join(directory, `${torn}.json`), '')
  expect(await records.read(torn)).toBeUndefined()
})

test('are bounded in number: the oldest go, with their output, but not those that run', async () => {
  const directory = await makeDirectory()
  const records = new CommandRecords(new CommandRecordFiles(directory), { ...PLENTY, records: 10 })
  const oldest = await add(records, { ageMs: 5000 })
  for (let n = 0; n < 40; n++) {
    await records.makeRoom((id) => id === oldest)
    await records.write(recordOf(uuid7()), { durable: false })
  }
  const ids = await records.ids()
  expect(ids.length).toBeLessThanOrEqual(10)
  expect(ids).toContain(oldest)
  expect((await readdir(directory)).filter((name) => name.endsWith('.stdout'))).toEqual([`${oldest}.stdout`])
})

test('are bounded in the size of their output, including output from before a restart', async () => {
  const directory = await makeDirectory()
  const limits = { records: 1000, outputBytes: 1000 }
  const before = new CommandRecords(new CommandRecordFiles(directory), PLENTY)
  const old = [await add(before, { output: 600 }), await add(before, { output: 600 })]
  const records = new CommandRecords(new CommandRecordFiles(directory), limits)
  const newer = await add(records, { output: 100 })
  expect(await records.ids()).toEqual([newer, old[1]])
  await add(records, { output: 600 })
  const last = await add(records)
  expect((await records.ids()).slice(0, 1)).toEqual([last])
  expect(await records.ids()).not.toContain(old[1])
})

test('with a key are kept for a day, even if there is no room for more', async () => {
  const records = new CommandRecords(new CommandRecordFiles(await makeDirectory()), { ...PLENTY, records: 3 })
  const past = await add(records, { key: 'past', ageMs: DAY_MS + 1000 })
  const live = [await add(records, { key: 'a' }), await add(records, { key: 'b' })]
  const next = await add(records, { key: 'c' })
  expect(await records.ids()).toEqual([next, ...live.toReversed()])
  expect(await records.ids()).not.toContain(past)
  await expect(add(records)).rejects.toMatchObject({ code: 'limit_reached' })
  expect(await records.withKey('a')).toHaveLength(1)
})
