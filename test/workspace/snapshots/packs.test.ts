import { execFileSync, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import fs from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { keepSnapshot } from '../../../src/workspace/snapshots/stored-snapshots.ts'
import { pruneSnapshots } from '../../../src/workspace/snapshots/prune-snapshots.ts'
import { createSlices } from '../../../src/lib/time-slices.ts'
import { writePackIndex } from '../../../src/workspace/snapshots/pack-index.ts'
import { openBench } from './fixture.ts'

type Bench = Awaited<ReturnType<typeof openBench>>

const git = ({ store }: Bench, args: readonly string[]) =>
  execFileSync(store.git, ['--git-dir=.', ...args], { cwd: store.directory, encoding: 'utf8', stdio: 'pipe' })

const packsOf = ({ store }: Bench) => {
  const directory = join(store.directory, 'objects/pack')
  return fs.readdirSync(directory).map((name) => join(directory, name))
}

test('git finds no fault in a store, and has the same index for each of its packs', async () => {
  await using bench = await openBench()
  const write = (path: string, content: string | Buffer) => {
    fs.mkdirSync(join(bench.workdir, path, '..'), { recursive: true })
    fs.writeFileSync(join(bench.workdir, path), content)
  }
  await bench.keep('nothing')
  for (const size of [0, 1, 15, 16, 2047, 2048, 16 * 1024 + 1, 64 * 1024 + 1, 3 * 1024 ** 2])
    write(`sizes/${size}`, randomBytes(size))
  // Git sorts a directory as if its name ended with a slash.
  for (const path of ['a', 'b/c', 'b.c', 'b-c', 'b0', 'x/y/z', 'x.y/z']) write(path, path)
  fs.symlinkSync('/nowhere', join(bench.workdir, 'link'))
  fs.chmodSync(join(bench.workdir, 'a'), 0o751)
  const all = await bench.keep('all')
  write('b/c', 'changed')
  fs.renameSync(join(bench.workdir, 'sizes'), join(bench.workdir, 'moved'))
  await bench.keep('changed')

  expect(git(bench, ['fsck', '--strict', '--full', '--no-dangling'])).toBe('')
  expect(git(bench, ['ls-tree', '-r', '--name-only', all.written.commit]).split('\n')).toContain('manifest')
  const packs = packsOf(bench).filter((path) => path.endsWith('.pack'))
  expect(packs.length).toBe(3)
  const large = packs.filter((path) => fs.statSync(path).size > 1024 ** 2)
  expect(large.length, 'what was moved is not stored again').toBe(1)
  for (const path of packs) {
    const index = join(bench.place, 'other.idx')
    git(bench, ['index-pack', '-o', index, path])
    expect(fs.readFileSync(index).equals(fs.readFileSync(path.replace(/pack$/, 'idx')))).toBe(true)
    fs.rmSync(index)
  }
})

test('the index of a pack of more than 2 GiB has its offsets', async () => {
  const objects = [5, 2 ** 31 - 1, 2 ** 31, 2 ** 40].map((offset, at) => ({
    name: `${at}`.repeat(40),
    offset,
    crc: at,
  }))
  const index = await writePackIndex(objects, randomBytes(20), createSlices())
  const shown = execFileSync('git', ['show-index'], { input: index, encoding: 'utf8' })
  expect(
    shown
      .trim()
      .split('\n')
      .map((line) => line.split(' ').slice(0, 2)),
  ).toEqual(objects.map(({ offset, name }) => [`${offset}`, name]))
})

test('a pack whose index was not written is removed, and a store that has lost its last snapshot gets all again', async () => {
  await using bench = await openBench()
  fs.writeFileSync(join(bench.workdir, 'a'), 'one')
  await bench.keep('one')
  const orphan = join(bench.store.directory, 'objects/pack', `pack-${'1'.repeat(40)}.pack`)
  fs.writeFileSync(orphan, 'PACK')
  for (const path of packsOf(bench)) if (path !== orphan) fs.rmSync(path)
  fs.writeFileSync(join(bench.workdir, 'b'), 'two')
  await expect(bench.keep('two')).rejects.toThrow('has lost the last one')
  await bench.keep('two')
  expect(fs.existsSync(orphan)).toBe(false)
  expect(git(bench, ['fsck', '--full', '--no-dangling', 'refs/snapshots/two'])).toBe('')
})

const SOURCES = new URL('../../../src/', import.meta.url).href

test('a disk that is full when a snapshot gets its name breaks no later repack', async () => {
  await using bench = await openBench()
  fs.writeFileSync(join(bench.workdir, 'a'), 'one')
  const { written } = await bench.keep('one')
  const program = `
    const { keepSnapshot } = await import('${SOURCES}workspace/snapshots/stored-snapshots.ts')
    await keepSnapshot({ directory: process.argv[1] }, 'torn', '${written.commit}').catch(() => process.exit(7))`
  const { status } = spawnSync(
    'bash',
    ['-c', 'ulimit -S -f 0; exec "$@"', 'bash', process.execPath, '-e', program, bench.store.directory],
    { stdio: 'ignore' },
  )
  expect(status).toBe(7)
  expect(fs.readdirSync(join(bench.store.directory, 'refs/snapshots'))).toEqual(['one'])
  expect(() => git(bench, ['repack', '-a', '-d', '-q'])).not.toThrow()
})

test('what the last look has written outlives a repack, also if no snapshot has it', async () => {
  await using bench = await openBench()
  const id = (at: number) => ({ id: `${at}`, seq: at, asOf: at, at: 0 })
  for (const at of [1, 2]) {
    fs.writeFileSync(join(bench.workdir, 'a'), `${at}`)
    await bench.keep(`${at}`)
  }
  fs.writeFileSync(join(bench.workdir, 'b'), 'in no snapshot')
  const { written } = await bench.look()
  await pruneSnapshots(bench.store, [id(1), id(2), id(3)], {
    runStart: 3,
    messages: async () => [],
    looks: [written.commit],
  })
  expect(fs.readdirSync(join(bench.store.directory, 'refs/snapshots'))).toEqual(['2'])
  expect(packsOf(bench).filter((path) => path.endsWith('.pack')).length).toBe(1)
  fs.writeFileSync(join(bench.workdir, 'c'), 'more')
  const next = await bench.look()
  await keepSnapshot(bench.store, '4', next.written.commit)
  expect(git(bench, ['fsck', '--full', '--no-dangling'])).toBe('')
  expect(git(bench, ['ls-tree', '-r', '--name-only', next.written.commit]).match(/\/[abc]$/gm)).toEqual([
    '/a',
    '/b',
    '/c',
  ])
})
