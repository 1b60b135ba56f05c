/** Looking for marked processes: shared by all who ask at once, cheap where most processes have no marks, never too old. */
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { expect, onTestFinished, test, vi } from 'vitest'
import { type CountedProcess, ProcessCensus } from '../../../src/shell/processes/process-census.ts'
import { isAlive } from '../../../src/shell/processes/process-table.ts'

const MARK = `CENSUS_TEST=${randomUUID()}`

function setCensus(readTimeoutMs?: number) {
  let reads = 0
  let foreignReads = 0
  const read = (environment: string) => {
    reads++
    if (environment.includes(MARK)) return 'ours'
    foreignReads++
    return undefined
  }
  const scans: boolean[] = []
  const entriesOf = (all: readonly CountedProcess<string>[], isWhole: boolean) => {
    scans.push(isWhole)
    return all.map(({ entry }) => entry)
  }
  const census = new ProcessCensus(read, entriesOf, (owner) => owner, readTimeoutMs)
  return { census, scans, reads: () => reads, foreignReads: () => foreignReads }
}

async function start(mark?: string): Promise<number> {
  const [name, value] = mark?.split('=') ?? []
  const env = { PATH: process.env['PATH'], ...(name !== undefined && { [name]: value }) }
  const child = spawn('sleep', ['1000'], { env, stdio: 'ignore' })
  const exited = once(child, 'exit')
  // The next test looks for processes with the same mark.
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await exited
  })
  await once(child, 'spawn')
  // For a moment of an exec the environment is empty, also after Node has reported the start.
  await expect.poll(() => readFile(`/proc/${child.pid}/environ`, 'utf8')).toContain('PATH=')
  return child.pid!
}

test('a thousand who look at once share one look', async () => {
  const { census, reads } = setCensus()
  const pid = await start(MARK)
  const one = setCensus()
  await one.census.take()
  const taken = await Promise.all(Array.from({ length: 1000 }, () => census.take()))
  expect(new Set(taken).size).toBe(1)
  expect(taken[0]!.map((entry) => entry.pid)).toEqual([pid])
  // Other tests start processes meanwhile; a thousand looks would be a thousand times as many reads.
  expect(reads()).toBeLessThan(one.reads() * 100)
})

test('a scan in progress does not count as one that began after the call', async () => {
  const { census } = setCensus()
  const before = census.take()
  await Promise.resolve()
  const pid = await start(MARK)
  expect((await census.take()).map((entry) => entry.pid)).toEqual([pid])
  await before
})

test('the environment of a process without marks is read once', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const { census, foreignReads } = setCensus()
  await Promise.all(Array.from({ length: 50 }, () => start()))
  await census.take()
  const first = foreignReads()
  expect(first).toBeGreaterThanOrEqual(50)
  await census.take()
  vi.advanceTimersByTime(300) // pids are not trusted any more
  await census.take()
  expect(foreignReads() - first, 'none but what other tests have started').toBeLessThan(50)
})

test('processes of others are not read again for a search of one owner, and those of the owner always are', async () => {
  const { census, reads, foreignReads } = setCensus()
  const pids = await Promise.all(Array.from({ length: 50 }, () => start(MARK)))
  const readIn = async (owner?: string) => {
    const before = reads() - foreignReads()
    expect(new Set((await census.take(owner)).map((entry) => entry.pid))).toEqual(new Set(pids))
    return reads() - foreignReads() - before
  }
  expect(await readIn()).toBe(50)
  // On a machine that is so slow that what is known has become old, they are read.
  await expect.poll(() => readIn('another'), { interval: 0 }).toBe(0)
  expect(await readIn('ours')).toBe(50)
  expect(await readIn()).toBe(50)
})

test('a process that ended is not in the next look', async () => {
  const { census } = setCensus()
  await start(MARK)
  const [entry] = await census.take()
  process.kill(entry!.pid, 'SIGKILL')
  await expect.poll(() => isAlive(entry!)).toBe(false)
  expect(await census.take()).toEqual([])
})

test('a scan that was too slow to read a process says so, and what comes late is in a later one', async () => {
  const { census, scans } = setCensus(0)
  const pid = await start(MARK)
  const pids = async () => (await census.take('ours')).map((entry) => entry.pid)
  const first = await pids()
  expect(first.includes(pid) || !scans[0]).toBe(true)
  await expect.poll(pids).toEqual([pid])
  // Reads of what is known are late, too.
  for (let i = 0; i < 10; i++) expect(await pids()).toEqual([pid])
  await expect.poll(async () => (await pids()) && scans.at(-1)).toBe(true)
})
