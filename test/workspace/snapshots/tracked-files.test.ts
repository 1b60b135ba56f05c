/** Files that a rule of git ignores and the repository tracks: they are in snapshots, as git keeps them. */
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { createSlices } from '../../../src/lib/time-slices.ts'
import { openRoot } from '../../../src/workspace/snapshots/open-directory.ts'
import { parseIndex, TrackedFiles } from '../../../src/workspace/snapshots/tracked-files.ts'
import { openBench } from './fixture.ts'

type Tree = Readonly<Record<string, string>>

function write(workdir: string, files: Readonly<Record<string, string | Buffer>>): void {
  for (const [path, text] of Object.entries(files)) {
    fs.mkdirSync(dirname(join(workdir, path)), { recursive: true })
    fs.writeFileSync(join(workdir, path), text)
  }
}

const gitIn =
  (workdir: string) =>
  (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.com', ...args], {
      cwd: workdir,
      stdio: ['ignore', 'pipe', 'pipe'],
    })

const FILES: Tree = {
  '.gitignore': 'build/\n*.log\n',
  'a.txt': '1',
  'kept.log': '1',
  'left.log': '1',
  'build/deep/kept': '1',
  'build/deep/left': '1',
  'build/other/left': '1',
}

test.each(['2', '3', '4'])(
  'a snapshot has what is ignored and tracked, and a restore brings it back (index %s)',
  async (version) => {
    await using bench = await openBench()
    const { workdir } = bench
    const git = gitIn(workdir)
    git('init', '-q')
    git('config', 'index.version', version)
    write(workdir, FILES)
    git('add', '-f', '.gitignore', 'a.txt', 'kept.log', 'build/deep/kept')
    // With this flag the entry needs the third version.
    if (version === '3') git('update-index', '--skip-worktree', 'kept.log')
    expect(fs.readFileSync(join(workdir, '.git/index')).readUInt32BE(4)).toBe(Number(version))
    const first = await bench.keep('first')
    const { entries, leftOut } = first.trees.get(workdir)!
    expect([...entries.keys()].toSorted()).toEqual(
      ['.gitignore', 'a.txt', 'build', 'build/deep', 'build/deep/kept', 'kept.log'].toSorted(),
    )
    expect(leftOut.map(({ path }) => path).toSorted()).toEqual(['build/deep/left', 'build/other', 'left.log'])
    write(
      workdir,
      Object.fromEntries(
        Object.keys(FILES)
          .slice(1)
          .map((path) => [path, '2']),
      ),
    )
    await bench.restore(first.written.commit)
    const text = (path: string) => fs.readFileSync(join(workdir, path), 'utf8')
    for (const path of ['a.txt', 'kept.log', 'build/deep/kept']) expect([path, text(path)]).toEqual([path, '1'])
    for (const path of ['left.log', 'build/deep/left', 'build/other/left'])
      expect([path, text(path)]).toEqual([path, '2'])
  },
)

test('a file that is tracked, or no longer is, is looked at again in a directory that has not changed', async () => {
  await using bench = await openBench()
  const { workdir } = bench
  const git = gitIn(workdir)
  git('init', '-q')
  write(workdir, FILES)
  const isSettled = () => fs.lstatSync(join(workdir, 'build/deep')).ctimeMs < Date.now() - 100
  await expect.poll(isSettled).toBe(true)
  const has = async (path: string) => (await bench.look()).trees.get(workdir)!.entries.has(path)
  expect([await has('build/deep/kept'), await has('build/deep/kept')]).toEqual([false, false])
  git('add', '-f', 'build/deep/kept')
  expect([await has('build/deep/kept'), await has('build/deep/kept')]).toEqual([true, true])
  await bench.reopen()
  expect(await has('build/deep/kept')).toBe(true)
  git('rm', '-q', '--cached', 'build/deep/kept')
  expect([await has('build/deep/kept'), await has('build')]).toEqual([false, false])
})

test('an index that is a link, or not one of git, tracks nothing and ends no snapshot', async () => {
  await using bench = await openBench(['outside'])
  const { workdir, place } = bench
  const git = gitIn(workdir)
  git('init', '-q')
  write(workdir, FILES)
  git('add', '-f', 'kept.log')
  const index = join(workdir, '.git/index')
  const whole = fs.readFileSync(index)
  const names = async () => [...(await bench.look()).trees.get(workdir)!.entries.keys()]
  expect(await names()).toContain('kept.log')
  fs.renameSync(index, join(place, 'outside/index'))
  fs.symlinkSync(join(place, 'outside/index'), index)
  expect(await names()).not.toContain('kept.log')
  for (let length = 0; length < whole.length; length += 7) {
    fs.rmSync(index)
    fs.writeFileSync(index, Buffer.concat([whole.subarray(0, length), Buffer.alloc(3, 0xff)]))
    expect(await names()).toContain('a.txt')
  }
})

test('an index of any bytes, or of paths that are too long together, tracks nothing', async () => {
  const slices = createSlices()
  const many = Buffer.alloc(1024 ** 2, 0xff)
  many.write('DIRC', 0, 'latin1')
  for (const version of [2, 3, 4, 5]) {
    many.writeUInt32BE(version, 4)
    expect(await parseIndex(many, slices)).toBeUndefined()
  }
  expect(await parseIndex(Buffer.from('DIRC'), slices)).toBeUndefined()
  // Each path keeps 4000 bytes of the one before it.
  const header = Buffer.alloc(12)
  header.write('DIRC\0\0\0\x04', 0, 'latin1')
  header.writeUInt32BE(100_000, 8)
  const entry = (kept: number, name: string) =>
    Buffer.concat([Buffer.alloc(62), Buffer.of(kept), Buffer.from(`${name}\0`)])
  const rest = Array.from({ length: 99_999 }, () => entry(1, 'b'))
  const long = Buffer.concat([header, entry(0, 'a'.repeat(4000)), ...rest])
  expect(await parseIndex(long, slices)).toBeUndefined()
  header.writeUInt32BE(3, 8)
  expect(await parseIndex(Buffer.concat([header, entry(0, 'ab'), entry(1, 'c'), entry(0, '/d')]), slices)).toEqual([
    'ab',
    'ac',
    'ac/d',
  ])
  header.writeUInt32BE(2, 8)
  expect(await parseIndex(Buffer.concat([header, entry(0, 'b'), entry(1, 'a')]), slices), 'not sorted').toBeUndefined()
})

test('others get their turns while a long index is read, and while what it tracks is compared', async () => {
  await using bench = await openBench()
  const entries = Array.from({ length: 10_000 }, (_, at) =>
    Buffer.concat([Buffer.alloc(62), Buffer.of(at === 0 ? 0 : 5), Buffer.from(`${String(at).padStart(5, '0')}\0`)]),
  )
  const header = Buffer.alloc(12)
  header.write('DIRC\0\0\0\x04', 0, 'latin1')
  header.writeUInt32BE(entries.length, 8)
  write(bench.workdir, { '.git/index': Buffer.concat([header, ...entries]) })
  let turns = 0
  using root = await openRoot(bench.workdir, false)
  const tracked = await TrackedFiles.open(root, undefined, { rest: () => void turns++ })
  expect(await tracked.has('09999', false)).toBe(true)
  expect(turns).toBeGreaterThan((2 * entries.length) / 300)
})
