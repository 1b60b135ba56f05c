/** Snapshots of trees that were made to do harm. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { differences, patchesOf, totalsBetween } from '../../../src/workspace/snapshots/diff-snapshots.ts'
import { GitStore } from '../../../src/workspace/snapshots/git-store.ts'
import { readTree } from '../../../src/workspace/snapshots/read-tree.ts'
import { forEachBlob, readSnapshot } from '../../../src/workspace/snapshots/stored-snapshots.ts'
import { openBench } from './fixture.ts'

test('each patch is that of its file, also after a file that has become a link', async () => {
  await using bench = await openBench()
  fs.writeFileSync(join(bench.workdir, 'a'), 'one\n')
  fs.writeFileSync(join(bench.workdir, 'b'), 'one\n')
  const before = await bench.keep('before')
  fs.rmSync(join(bench.workdir, 'a'))
  fs.symlinkSync('b', join(bench.workdir, 'a'))
  fs.writeFileSync(join(bench.workdir, 'b'), 'two\n')
  const after = await bench.keep('after')
  const range = { commits: [before.written.commit, after.written.commit] as const, paths: [] }
  const files = await differences(bench.store, range)
  expect(files.map(({ status }) => status)).toEqual(['type_changed', 'modified'])
  const patches = await patchesOf(bench.store, range, { all: files, first: 0, count: 2 })
  expect(patches.map(({ text }) => text.match(/^[-+][^-+].*$/gm))).toEqual([
    ['-one', '+b'],
    ['-one', '+two'],
  ])
  expect((await patchesOf(bench.store, range, { all: files, first: 1, count: 1 }))[0]?.text).toContain('+two')
})

test('a page of long patches ends early, and the next one has the rest', async () => {
  await using bench = await openBench()
  const before = await bench.keep('before')
  const text = `${'x'.repeat(99)}\n`.repeat(2500)
  for (let at = 10; at < 50; at++) fs.writeFileSync(join(bench.workdir, `${at}`), `${at}\n${text}`)
  const after = await bench.keep('after')
  const range = { commits: [before.written.commit, after.written.commit] as const, paths: [] }
  const all = await differences(bench.store, range)
  const found = []
  const sizes = []
  while (found.length < all.length) {
    const page = await patchesOf(bench.store, range, { all, first: found.length, count: 100 })
    sizes.push(page.reduce((sum, each) => sum + each.text.length, 0))
    found.push(...page.map((each) => each.text.match(/^\+(\d+)$/m)?.[1]))
  }
  expect(found).toEqual(Array.from({ length: 40 }, (_, at) => `${at + 10}`))
  expect(Math.max(...sizes)).toBeLessThan(10 * 1024 * 1024)
})

test('rules of a .gitignore that stand for any depth many times are matched in time', async () => {
  await using bench = await openBench()
  const deep = Array.from({ length: 100 }, () => 'd').join('/')
  fs.mkdirSync(join(bench.workdir, deep), { recursive: true })
  const rules = Array.from({ length: 30 }, () => `${'**/d/'.repeat(800)}x\n${'**/'.repeat(1300)}x\n`)
  fs.writeFileSync(join(bench.workdir, '.gitignore'), `${rules.join('')}**/d/**/2\nd/**/**/d/3\n`)
  for (let at = 0; at < 20; at++) fs.writeFileSync(join(bench.workdir, deep, `${at}`), '')
  const { trees } = await bench.look()
  const left = trees.get(bench.workdir)!.leftOut
  expect(left).toEqual([
    { path: `${deep}/2`, reason: 'ignored' },
    { path: `${deep}/3`, reason: 'ignored' },
  ])
})

test('names that every object has are those of files, directories and classes as any other', async () => {
  await using bench = await openBench()
  const names = ['constructor', 'toString', '__proto__']
  const modes = (place: string) => names.map((name) => fs.statSync(join(bench.workdir, place, name)).mode & 0o777)
  fs.mkdirSync(join(bench.workdir, 'valueOf'))
  for (const name of names) {
    fs.writeFileSync(join(bench.workdir, name), name, { mode: 0o644 })
    fs.writeFileSync(join(bench.workdir, 'valueOf', name), name, { mode: 0o600 })
  }
  fs.chmodSync(join(bench.workdir, '__proto__'), 0o604)
  fs.writeFileSync(join(bench.workdir, '.gitignore'), 'x[[:constructor:]]\n')
  fs.writeFileSync(join(bench.workdir, 'xo'), '')
  const { written, trees } = await bench.keep('before')
  expect(trees.get(bench.workdir)!.leftOut).toEqual([])
  const before = [modes(''), modes('valueOf')]
  for (const name of names) fs.rmSync(join(bench.workdir, name))
  fs.rmSync(join(bench.workdir, 'valueOf'), { recursive: true })
  await bench.restore(written.commit)
  expect([modes(''), modes('valueOf')]).toEqual(before)
})

test('a tree whose paths do not fit in memory has no snapshot, and the error says so', async () => {
  await using bench = await openBench()
  await using _ = { [Symbol.asyncDispose]: async () => void execFileSync('rm', ['-rf', bench.workdir]) }
  const before = process.cwd()
  process.chdir(bench.workdir)
  try {
    // The system opens no path that is longer than 4096 bytes at once.
    for (let depth = 0; depth < 30; depth++) {
      fs.mkdirSync('d'.repeat(250))
      process.chdir('d'.repeat(250))
    }
    fs.writeFileSync('file', '')
  } finally {
    process.chdir(before)
  }
  const { trees } = await bench.look()
  const { entries, leftOut } = trees.get(bench.workdir)!
  expect(Math.max(...entries.keys().map(({ length }) => length))).toBeLessThan(4096)
  expect(leftOut).toMatchObject([{ reason: 'unreadable' }])
  const store = async () => {}
  const reading = {
    knownEntries: undefined,
    memory: undefined,
    store,
    isShown: () => true,
    without: [],
    signal: AbortSignal.timeout(60_000),
  }
  const reads = (pathBytes: number) =>
    readTree(bench.workdir, { ...reading, entries: new Map(), budget: { entries: 100, pathBytes } })
  await reads(100_000)
  await expect(reads(10_000)).rejects.toMatchObject({
    code: 'workdir_too_large',
    message: expect.stringContaining('too long'),
  })
})

test('rules of a repository behind a link are not read', async () => {
  await using bench = await openBench(['outside/info'])
  fs.writeFileSync(join(bench.place, 'outside/info/exclude'), 'guess\n')
  fs.writeFileSync(join(bench.workdir, 'guess'), '')
  fs.symlinkSync(join(bench.place, 'outside'), join(bench.workdir, '.git'))
  expect((await bench.look()).trees.get(bench.workdir)!.entries.has('guess')).toBe(true)
  fs.rmSync(join(bench.workdir, '.git'))
  fs.mkdirSync(join(bench.workdir, '.git'))
  fs.symlinkSync(join(bench.place, 'outside/info'), join(bench.workdir, '.git/info'))
  expect((await bench.look()).trees.get(bench.workdir)!.entries.has('guess')).toBe(true)
})

test('names that git gives a meaning to end no snapshot', async () => {
  await using bench = await openBench()
  for (const name of ['git~1', '.git ', '.git.', 'back\\.git', '.gitmodules', '..git'])
    fs.writeFileSync(join(bench.workdir, name), name)
  fs.mkdirSync(join(bench.workdir, '.GIT'))
  const { entries, leftOut } = (await bench.look()).trees.get(bench.workdir)!
  expect(entries.size).toBe(6)
  // Newer versions of git refuse this name in any spelling.
  expect(leftOut).toEqual([{ path: '.GIT', reason: 'special' }])
})

test('what a git that was killed has left is removed, and its locks end no later snapshot', async () => {
  await using bench = await openBench()
  fs.writeFileSync(join(bench.workdir, 'a'), 'one')
  await bench.keep('one')
  const left = [
    'refs/heads/last.lock',
    'packed-refs.lock',
    'objects/pack/tmp_pack_a1b2c3',
    'objects/pack/.tmp-7-pack-1.pack',
  ]
  for (const name of left) fs.writeFileSync(join(bench.store.directory, name), '')
  fs.writeFileSync(join(bench.workdir, 'a'), 'two')
  await bench.keep('two')
  expect(left.filter((name) => fs.existsSync(join(bench.store.directory, name)))).toEqual([])
})

test('a snapshot that is removed or damaged while it is read is not found, and the next one works', async () => {
  await using bench = await openBench()
  fs.writeFileSync(join(bench.workdir, 'a'), 'one')
  const { written } = await bench.keep('one')
  const missing = { code: 'snapshot_not_found' }
  const packs = join(bench.store.directory, 'objects/pack')
  for (const name of fs.readdirSync(packs)) fs.rmSync(join(packs, name))
  await expect(readSnapshot(bench.store, written.commit)).rejects.toMatchObject(missing)
  await expect(forEachBlob(bench.store, ['0'.repeat(40)], async () => {})).rejects.toMatchObject(missing)
  await bench.reopen()
  const { written: next } = await bench.keep('two')
  expect((await readSnapshot(bench.store, next.commit)).get(bench.workdir)!.entries.has('a')).toBe(true)
  await bench.store.remove()
  const range = { commits: [written.commit, next.commit] as const, paths: [] }
  await expect(differences(bench.store, range)).rejects.toMatchObject(missing)
})

test('a directory that a link has replaced is not read, neither a workdir nor an additional one', async () => {
  await using bench = await openBench(['other'])
  const { workdir, place } = bench
  fs.mkdirSync(join(place, 'outside'))
  fs.writeFileSync(join(place, 'outside/key'), 'secret')
  fs.writeFileSync(join(workdir, 'a'), '1')
  await bench.keep('one')
  const replace = (path: string) => {
    fs.renameSync(path, `${path}-moved`)
    fs.symlinkSync(join(place, 'outside'), path)
  }
  replace(join(place, 'other'))
  const { trees } = await bench.look()
  expect([...trees.keys()]).toEqual([workdir])
  replace(workdir)
  await expect(bench.look()).rejects.toThrow('leads elsewhere')
})

test('a file on which a program has a lease is left out, and all others are in the snapshot', async () => {
  await using bench = await openBench()
  const path = join(bench.workdir, 'leased')
  fs.writeFileSync(path, 'x')
  fs.writeFileSync(join(bench.workdir, 'other'), 'x')
  const lines = ['import fcntl, signal, sys', 'signal.signal(signal.SIGIO, signal.SIG_IGN)', 'file = open(sys.argv[1])']
  lines.push('fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)', 'print("leased", flush=True)', 'sys.stdin.read()')
  const holder = spawn('python3', ['-c', lines.join('\n').replace('argv[1])', 'argv[1], "r+")'), path])
  try {
    await once(holder.stdout, 'data')
    const { trees } = await bench.look()
    expect(trees.get(bench.workdir)!.leftOut).toEqual([{ path: 'leased', reason: 'unreadable' }])
    expect([...trees.get(bench.workdir)!.entries.keys()]).toEqual(['other'])
  } finally {
    holder.stdin.end()
    await once(holder, 'close')
  }
})

test('of many files that were renamed and changed, git does not compare each with each', async () => {
  await using bench = await openBench()
  const rename = async (count: number) => {
    const at = (name: string) => join(bench.workdir, name)
    for (const name of fs.readdirSync(bench.workdir)) fs.rmSync(at(name))
    const text = (of: number, end: string) => `${of} ${'line\n'.repeat(20)}${end}\n`
    for (let of = 0; of < count; of++) fs.writeFileSync(at(`old${of}`), text(of, 'before'))
    const before = await bench.keep('before')
    for (let of = 0; of < count; of++) fs.rmSync(at(`old${of}`))
    for (let of = 0; of < count; of++) fs.writeFileSync(at(`new${of}`), text(of, of === 0 ? 'before' : 'after'))
    const after = await bench.keep('after')
    const files = await differences(bench.store, { commits: [before.written.commit, after.written.commit], paths: [] })
    return files.filter(({ status }) => status === 'renamed').length
  }
  expect(await rename(3)).toBe(3)
  // The one that was only renamed is found anyway.
  expect(await rename(150)).toBe(1)
})

test('a comparison that takes too long has no totals, and one that cannot be read says so', async () => {
  await using bench = await openBench()
  const before = await bench.keep('before')
  fs.writeFileSync(join(bench.workdir, 'a'), 'one\n')
  const after = await bench.keep('after')
  const commits = [before.written.commit, after.written.commit] as const
  expect(await totalsBetween(bench.store, commits)).toEqual({ files: 1, added: 1, removed: 0 })
  const slow = join(bench.place, 'slow-git')
  fs.writeFileSync(slow, '#!/bin/sh\nkill -KILL $$\n', { mode: 0o755 })
  expect(await totalsBetween(new GitStore(bench.store.directory, slow), commits)).toBeUndefined()
  fs.rmSync(join(bench.store.directory, 'objects'), { recursive: true })
  await expect(totalsBetween(bench.store, commits)).rejects.toMatchObject({ code: 'snapshot_not_found' })
})

test('contents are read for as long as it takes to use them, and git has its time for each answer', async () => {
  await using bench = await openBench()
  for (const name of ['a', 'b', 'c']) fs.writeFileSync(join(bench.workdir, name), name.repeat(1024 ** 2))
  const { written } = await bench.keep('kept')
  const entries = [...(await readSnapshot(bench.store, written.commit)).values()].flatMap((tree) => [
    ...tree.entries.values(),
  ])
  const { directory, git } = bench.store
  const limits: AbortController[] = []
  const limit = () => limits[limits.push(new AbortController()) - 1]!.signal
  const readAll = (program: string, use: () => void) =>
    forEachBlob(
      new GitStore(directory, program, limit),
      entries.map(({ blob }) => blob),
      async () => use(),
    )
  let count = 0
  await readAll(git, () => {
    count++
    // The time of all that has begun is over.
    for (const each of limits) each.abort()
  })
  expect(count).toBe(3)
  const silent = join(bench.place, 'silent-git')
  fs.writeFileSync(silent, '#!/bin/sh\nexec sleep 1000\n', { mode: 0o755 })
  const reading = readAll(silent, () => {})
  limits.at(-1)!.abort()
  await expect(reading).rejects.toThrow('ended early')
})
