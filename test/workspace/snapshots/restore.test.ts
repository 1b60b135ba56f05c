/** Snapshots of a workdir and their restores, against a model of the tree: contents, kinds and modes, byte for byte. */
import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isEmptyPlan, planRestore } from '../../../src/workspace/snapshots/plan-restore.ts'
import { readSnapshot } from '../../../src/workspace/snapshots/stored-snapshots.ts'
import { createRandom } from '../../support/random.ts'
import { openBench } from './fixture.ts'
import { changeSomething, describeTree, isWithin, LARGE, sorted } from './random-tree.ts'

const SEEDS = [1, 2, 3, 4, 5, 6]

test.each(SEEDS)('a restore makes what a snapshot contains exact, and touches nothing else (seed %i)', async (seed) => {
  const random = createRandom(seed * 7919)
  await using bench = await openBench()
  const { workdir, place } = bench
  fs.mkdirSync(`${place}/outside`)
  fs.writeFileSync(`${place}/outside/secret`, 'secret')
  const outside = sorted(describeTree(`${place}/outside`))
  const kept: { id: string; commit: string; model: Map<string, string>; leftOut: readonly string[] }[] = []

  for (let round = 0; round < 12; round++) {
    for (let change = random.below(12); change > 0; change--) changeSomething(workdir, random)
    const id = `s${round}`
    const { written, trees } = await bench.keep(id)
    const leftOut = trees.get(fs.realpathSync(workdir))!.leftOut.map(({ path }) => path)
    kept.push({ id, commit: written.commit, leftOut, model: describeTree(workdir, isWithin(leftOut)) })
    if (random.below(3) === 0) await bench.reopen()
    if (random.below(2) === 0) continue

    const target = random.pick(kept)
    const isLeft = isWithin([...leftOut, ...target.leftOut])
    const before = describeTree(workdir)
    const { failed } = await bench.restore(target.commit)
    const after = describeTree(workdir)
    const untouched = (found: Map<string, string>) => sorted(new Map([...found].filter(([path]) => isLeft(path))))
    expect(untouched(after)).toEqual(untouched(before))
    // What is in the way of something else is not removed, and named.
    const isExcused = (path: string) =>
      isLeft(path) ||
      [...leftOut, ...target.leftOut].some((left) => left.startsWith(`${path}/`)) ||
      isWithin(failed.map((each) => each.path))(path)
    const compared = (found: Map<string, string>) => sorted(new Map([...found].filter(([path]) => !isExcused(path))))
    expect(compared(after)).toEqual(compared(target.model))
    expect(sorted(describeTree(`${place}/outside`))).toEqual(outside)
  }
  execFileSync('git', ['--git-dir=.', 'fsck', '--full', '--strict'], { cwd: bench.store.directory, stdio: 'pipe' })
})

test('a restored snapshot needs no other restore, and an unchanged tree no process and no snapshot', async () => {
  await using bench = await openBench()
  fs.mkdirSync(`${bench.workdir}/empty/inner`, { recursive: true })
  fs.writeFileSync(`${bench.workdir}/crlf.txt`, 'one\r\ntwo\r\n', { mode: 0o640 })
  const first = await bench.keep('first')
  const packs = () => fs.readdirSync(join(bench.store.directory, 'objects/pack'))
  const before = packs()
  expect((await bench.look()).written).toEqual(first.written)
  await bench.reopen()
  expect((await bench.look()).written).toEqual(first.written)
  expect(packs()).toEqual(before)
  fs.rmSync(`${bench.workdir}/empty`, { recursive: true })
  await bench.restore(first.written.commit)
  const now = await bench.look()
  const target = await readSnapshot(bench.store, first.written.commit)
  expect(isEmptyPlan(await planRestore(now.trees, target))).toBe(true)
  expect(now.written.tree).toBe(first.written.tree)
})

test('a restore makes no set-user-ID program, ends one that was made since, and has nothing left to do', async () => {
  await using bench = await openBench()
  const [old, later] = [join(bench.workdir, 'old'), join(bench.workdir, 'later')]
  const make = (path: string, mode: number) => {
    fs.writeFileSync(path, 'program')
    fs.chmodSync(path, mode)
  }
  make(old, 0o4755)
  make(later, 0o755)
  const { written } = await bench.keep('first')
  fs.rmSync(old)
  fs.chmodSync(later, 0o4755)
  await bench.restore(written.commit)
  expect([old, later].map((path) => (fs.statSync(path).mode & 0o7777).toString(8))).toEqual(['755', '755'])
  const { plans } = await bench.restore(written.commit)
  expect(isEmptyPlan(plans)).toBe(true)
})

test('what is in a directory that nothing can be written to goes back, and its mode too', async () => {
  await using bench = await openBench()
  const { workdir, place } = bench
  for (const name of ['kept', 'changed']) fs.mkdirSync(`${workdir}/${name}`)
  fs.writeFileSync(`${workdir}/kept/a`, 'one')
  fs.chmodSync(`${workdir}/kept`, 0o555)
  const { written } = await bench.keep('first')
  const model = describeTree(workdir)
  fs.chmodSync(`${workdir}/kept`, 0o755)
  fs.writeFileSync(`${workdir}/kept/a`, 'two')
  fs.mkdirSync(`${workdir}/new/inner`, { recursive: true })
  for (const name of ['kept/b', 'changed/c', 'new/inner/d']) fs.writeFileSync(`${workdir}/${name}`, 'new')
  for (const name of ['kept', 'changed', 'new/inner', 'new']) fs.chmodSync(`${workdir}/${name}`, 0o555)
  const program = `
    const { openBench } = await import('${import.meta.resolve('./fixture.ts')}')
    const bench = await openBench([], process.argv[1])
    const { failed } = await bench.restore('${written.commit}')
    process.stdout.write(JSON.stringify(failed))
    process.exit(0)`
  // Modes do not bind the superuser.
  const bound = process.getuid!() === 0 ? ['setpriv', '--bounding-set', '-dac_override', '--inh-caps', '-all'] : []
  const failed = execFileSync('env', [...bound, process.execPath, '-e', program, place], { encoding: 'utf8' })
  expect(JSON.parse(failed)).toEqual([])
  expect(sorted(describeTree(workdir))).toEqual(sorted(model))
})

test('a snapshot of the first version is restored', async () => {
  await using bench = await openBench()
  const { workdir, store } = bench
  fs.mkdirSync(`${workdir}/empty/inner`, { recursive: true, mode: 0o750 })
  fs.writeFileSync(`${workdir}/__proto__`, 'odd', { mode: 0o604 })
  for (const name of ['a', 'b']) fs.writeFileSync(`${workdir}/${name}`, name)
  fs.writeFileSync(`${workdir}/.gitignore`, 'ignored\n')
  fs.writeFileSync(`${workdir}/ignored`, 'left')
  const { written } = await bench.keep('now')
  const model = describeTree(workdir)
  const git = (args: readonly string[], input = '') =>
    execFileSync(store.git, ['--git-dir=.', ...args], { cwd: store.directory, encoding: 'utf8', input }).trim()
  const [head = '', ...lines] = git(['cat-file', 'blob', `${written.commit}:manifest`]).split('\n')
  const { name, path, modes } = JSON.parse(head).roots[0]
  const listOf = (kind: string) =>
    lines.slice(0, -1).flatMap((line) => {
      const [list, items] = JSON.parse(line)
      return list === `${kind} ${name}` ? items : []
    })
  const odd = Object.fromEntries(listOf('odd'))
  expect(listOf('empty').length * listOf('left_out').length * Object.keys(odd).length).toBeGreaterThan(0)
  const root = { path, modes, odd, empty: listOf('empty'), left_out: listOf('left_out') }
  const blob = git(['hash-object', '-w', '--stdin'], JSON.stringify({ roots: { [name]: root } }))
  const entries = git(['ls-tree', written.commit]).replace(/blob \S+\tmanifest/, `blob ${blob}\tmanifest`)
  const names = ['-c', 'user.name=a', '-c', 'user.email=a@example.com']
  const first = git([...names, 'commit-tree', '-m', 'first', git(['mktree'], `${entries}\n`)])
  for (const each of fs.readdirSync(workdir))
    if (each !== 'ignored') fs.rmSync(`${workdir}/${each}`, { recursive: true })
  const { failed } = await bench.restore(first)
  expect(failed).toEqual([])
  expect(sorted(describeTree(workdir))).toEqual(sorted(model))
})

test('neither settings, attributes, hooks nor filters of a repository have an effect, and its files stay as they are', async () => {
  await using bench = await openBench()
  const { workdir, place } = bench
  const mark = `${place}/executed`
  const git = (...args: string[]) => execFileSync('git', args, { cwd: workdir, stdio: 'pipe' })
  fs.writeFileSync(`${workdir}/file.txt`, 'one\r\n$Id$\r\n')
  git('init', '-q')
  git('add', '.')
  git('-c', 'user.name=a', '-c', 'user.email=a@example.com', 'commit', '-q', '-m', 'first')
  for (const key of [
    'core.fsmonitor',
    'filter.evil.clean',
    'filter.evil.smudge',
    'diff.evil.textconv',
    'diff.external',
  ])
    git('config', key, `touch ${mark}; cat`)
  git('config', 'core.hooksPath', `${workdir}/hooks`)
  git('config', 'core.autocrlf', 'input')
  fs.mkdirSync(`${workdir}/hooks`)
  for (const hook of ['post-index-change', 'pre-commit', 'reference-transaction', 'post-checkout'])
    fs.writeFileSync(`${workdir}/hooks/${hook}`, `#!/bin/sh\ntouch ${mark}\n`, { mode: 0o755 })
  const attributes = '* text=auto eol=lf ident filter=evil diff=evil working-tree-encoding=UTF-16\n'
  fs.writeFileSync(`${workdir}/.gitattributes`, attributes)
  // Nested repositories are directories; one says that its repository is somewhere else.
  fs.mkdirSync(`${workdir}/nested/.git/objects`, { recursive: true })
  fs.writeFileSync(`${workdir}/nested/inner.txt`, 'inner')
  fs.mkdirSync(`${workdir}/pointing`)
  fs.writeFileSync(`${workdir}/pointing/.git`, `gitdir: ${place}/outside\n`)
  fs.writeFileSync(`${workdir}/pointing/file`, 'pointing')
  const repository = sorted(describeTree(`${workdir}/.git`))
  const before = describeTree(workdir)

  const first = await bench.keep('first')
  fs.writeFileSync(`${workdir}/file.txt`, 'changed')
  fs.rmSync(`${workdir}/nested/inner.txt`)
  fs.rmSync(`${workdir}/pointing/file`)
  fs.rmSync(`${workdir}/hooks`, { recursive: true })
  expect((await bench.restore(first.written.commit)).failed).toEqual([])

  expect(sorted(describeTree(workdir))).toEqual(sorted(before))
  expect(sorted(describeTree(`${workdir}/.git`))).toEqual(repository)
  expect(fs.existsSync(mark)).toBe(false)
  expect(fs.existsSync(`${place}/outside`)).toBe(false)
  expect([...first.trees.values()][0]!.entries.get('nested/inner.txt')).toMatchObject({ kind: 'file' })
})

test('a restore follows no link that has taken the place of a directory', async () => {
  await using bench = await openBench()
  const { workdir, place } = bench
  fs.mkdirSync(`${place}/outside`)
  fs.mkdirSync(`${workdir}/d`)
  fs.writeFileSync(`${workdir}/d/file`, 'inside')
  const { written } = await bench.keep('first')
  fs.rmSync(`${workdir}/d`, { recursive: true })
  fs.symlinkSync(`${place}/outside`, `${workdir}/d`)
  fs.writeFileSync(`${place}/outside/file`, 'outside')
  await bench.restore(written.commit)
  expect(fs.readFileSync(`${place}/outside/file`, 'utf8')).toBe('outside')
  expect(fs.readFileSync(`${workdir}/d/file`, 'utf8')).toBe('inside')
  expect(fs.lstatSync(`${workdir}/d`).isDirectory()).toBe(true)
})

test('what somebody changes during a restore stays, and the answer lists it', async () => {
  await using bench = await openBench()
  const at = (name: string) => `${bench.workdir}/${name}`
  for (const name of ['edited', 'gone', 'touched']) fs.writeFileSync(at(name), 'first')
  fs.symlinkSync('first', at('link'))
  const { written } = await bench.keep('first')
  for (const name of ['edited', 'touched', 'added']) fs.writeFileSync(at(name), 'second')
  fs.rmSync(at('gone'))
  fs.rmSync(at('link'))
  fs.symlinkSync('second', at('link'))
  const { failed } = await bench.restore(written.commit, () => {
    for (const name of ['edited', 'added', 'gone']) fs.writeFileSync(at(name), 'by hand')
    fs.rmSync(at('link'))
    fs.symlinkSync('by-hand', at('link'))
    fs.utimesSync(at('touched'), 1, 1)
  })
  const reason = 'somebody has changed it meanwhile'
  expect(failed).toEqual(['added', 'edited', 'gone', 'link'].map((path) => ({ path, reason })))
  for (const name of ['edited', 'added', 'gone']) expect(fs.readFileSync(at(name), 'utf8')).toBe('by hand')
  expect(fs.readlinkSync(at('link'))).toBe('by-hand')
  expect(fs.readFileSync(at('touched'), 'utf8')).toBe('first')
})

test('a snapshot says what it leaves out and why, and a restore leaves that alone', async () => {
  await using bench = await openBench()
  const { workdir } = bench
  fs.mkdirSync(`${workdir}/node_modules/dep`, { recursive: true })
  fs.writeFileSync(`${workdir}/node_modules/dep/index.js`, '1')
  fs.writeFileSync(`${workdir}/large`, LARGE)
  execFileSync('mkfifo', [`${workdir}/pipe`])
  fs.writeFileSync(`${workdir}/key`, 'of the server')
  bench.hidden.add(`${fs.realpathSync(workdir)}/key`)
  const first = await bench.keep('first')
  expect([...first.trees.values()][0]!.leftOut).toEqual([
    { path: 'key', reason: 'hidden' },
    { path: 'large', reason: 'too_large' },
    { path: 'node_modules', reason: 'ignored' },
    { path: 'pipe', reason: 'special' },
  ])
  fs.writeFileSync(`${workdir}/large`, 'small now')
  fs.writeFileSync(`${workdir}/node_modules/dep/index.js`, '2')
  await bench.restore(first.written.commit)
  expect(fs.readFileSync(`${workdir}/large`, 'utf8')).toBe('small now')
  expect(fs.readFileSync(`${workdir}/node_modules/dep/index.js`, 'utf8')).toBe('2')
})
