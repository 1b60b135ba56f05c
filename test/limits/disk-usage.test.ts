/** What counts as used, measured on real files. */
import { link, mkdir, mkdtemp, open, rm, symlink, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { DiskQuota } from '../../src/limits/disk-quota.ts'
import { ENTRY_BYTES, findLargest, measureDisk, measureNameless } from '../../src/limits/disk-usage.ts'

const PROGRAMS = { du: '/usr/bin/du', find: '/usr/bin/find' }
const MIB = 1024 ** 2

async function makeRoots(): Promise<[string, string]> {
  const root = await mkdtemp(join(tmpdir(), 'disk-usage-'))
  onTestFinished(() => rm(root, { recursive: true, force: true }))
  const roots: [string, string] = [join(root, 'a'), join(root, 'b')]
  for (const each of roots) await mkdir(each)
  return roots
}

const bytesOf = async (roots: readonly string[]) => (await measureDisk(PROGRAMS, roots)).bytes

test('counts blocks instead of lengths, hard links once, and no targets of links', async () => {
  const [a, b] = await makeRoots()
  const empty = await bytesOf([a, b])
  await writeFile(join(a, 'one'), Buffer.alloc(MIB, 1))
  await link(join(a, 'one'), join(b, 'the-same'))
  await writeFile(join(a, 'sparse'), '')
  await truncate(join(a, 'sparse'), 100 * MIB)
  await symlink('/usr', join(b, 'elsewhere'))
  const grownBy = (await bytesOf([a, b])) - empty
  expect(grownBy).toBeGreaterThanOrEqual(MIB)
  expect(grownBy).toBeLessThan(1.2 * MIB)
  expect(await findLargest(PROGRAMS, [a, b])).toEqual([[join(a, 'one'), MIB]])
})

test('counts empty files', async () => {
  const [a] = await makeRoots()
  const before = await bytesOf([a])
  for (let i = 0; i < 100; i++) await writeFile(join(a, `${i}`), '')
  expect((await bytesOf([a])) - before).toBeGreaterThanOrEqual(100 * ENTRY_BYTES)
})

test('a directory that is not there holds nothing', async () => {
  const [a] = await makeRoots()
  expect(await bytesOf([join(a, 'missing')])).toBe(0)
})

test('finds files that have no name any more, while a process has them open', async () => {
  const [a, b] = await makeRoots()
  const before = await measureNameless([process.pid], [a])
  await using file = await open(join(a, 'nameless'), 'w')
  await file.write(Buffer.alloc(MIB, 1))
  await file.sync()
  await rm(join(a, 'nameless'))
  expect((await measureNameless([process.pid], [a, b])) - before).toBe(MIB)
})

test('a quota is exceeded by written files, and not after they are deleted', async () => {
  const roots = await makeRoots()
  const quota = new DiskQuota({
    limitBytes: 2 * MIB,
    roots: () => roots,
    programs: PROGRAMS,
    pids: async () => [],
    isBusy: () => false,
  })
  expect(await quota.room()).toBeGreaterThan(MIB)
  await writeFile(join(roots[1], 'large'), Buffer.alloc(3 * MIB, 1))
  await quota.settle({ isNeeded: true })
  // A measurement that takes long continues, and what was known before is answered.
  await expect.poll(() => quota.tell({ withNames: true })).toContain('large" (3 MiB)')
  expect(quota.isOver).toBe(true)
  expect(await quota.room()).toBe(0)
  expect(quota.tell({ withNames: false })).not.toContain('large')
  await rm(join(roots[1], 'large'))
  await expect.poll(() => quota.room()).toBeGreaterThan(MIB)
})

test('bytes written by the server count immediately', async () => {
  const roots = await makeRoots()
  const options = { limitBytes: 2 * MIB, roots: () => roots, programs: PROGRAMS, pids: async () => [] }
  const quota = new DiskQuota({ ...options, isBusy: () => false })
  const room = await quota.room()
  quota.add(MIB)
  expect(await quota.room()).toBeLessThanOrEqual(room - MIB)
})

test('bytes written by the server while it measures are not lost with the measurement', async () => {
  const roots = await makeRoots()
  let isMeasured = false
  const pids = async () => {
    isMeasured = true
    quota.add(MIB)
    return []
  }
  const options = { limitBytes: 4 * MIB, roots: () => roots, programs: PROGRAMS, isBusy: () => false }
  const quota: DiskQuota = new DiskQuota({ ...options, pids })
  await expect.poll(async () => (await quota.look()) && isMeasured).toBe(true)
  expect(quota.usedBytes).toBeGreaterThan(MIB)
  expect(quota.usedBytes).toBeLessThan(2 * MIB)
})
