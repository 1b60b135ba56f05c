/** Snapshots of a workdir and their restores, against a model of the tree: contents, kinds and modes, byte for byte. */
import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isEmptyPlan, planRestore } from '../../../src/workspace/snapshots/plan-restore.ts'
import { readSnapshot } from '../../../src/workspace/snapshots/stored-snapshots.ts'
import { openBench } from './fixture.ts'

/** What is at each path (latin1) below the directory: kind, mode, and content or target. */
function describeTree(directory: string, except: (path: string) => boolean = () => false): Map<string, string> {
  const found = new Map<string, string>()
  const visit = (path: string) => {
    const at = Buffer.concat([Buffer.from(`${directory}/`), Buffer.from(path, 'latin1')])
    for (const name of fs.readdirSync(at, { encoding: 'buffer' })) {
      const inner = path === '' ? name.toString('latin1') : `${path}/${name.toString('latin1')}`
      if (except(inner)) continue
      const full = Buffer.concat([Buffer.from(`${directory}/`), Buffer.from(inner, 'latin1')])
      const facts = fs.lstatSync(full)
      const mode = (facts.mode & 0o7777).toString(8)
      if (facts.isDirectory()) {
        found.set(inner, `directory ${mode}`)
        visit(inner)
      } else if (facts.isSymbolicLink())
        found.set(inner, `link ${fs.readlinkSync(full, { encoding: 'buffer' }).toString('latin1')}`)
      else if (facts.isFile()) found.set(inner, `file ${mode} ${fs.readFileSync(full).toString('latin1')}`)
      else found.set(inner, 'other')
    }
  }
  visit('')
  return found
}

const sorted = (found: Map<string, string>) => [...found].sort(([a], [b]) => (a < b ? -1 : 1))

/** A generator with a seed, so that a failure can be repeated. */
function createRandom(seed: number) {
  let state = seed
  const next = (limit: number) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return Math.floor((state / 2 ** 32) * limit)
  }
  return { next, pick: <T>(items: readonly T[]): T => items[next(items.length)]! }
}

const NAMES = ['a', 'b', 'c.txt', 'd.log', 'e f', 'q"uote', 'new\nline', 'back\\slash', '\xff\xfe', 'build', 'sub']
const LARGE = Buffer.alloc(10 * 1024 * 1024 + 1, 'x')

function changeSomething(workdir: string, { next, pick }: ReturnType<typeof createRandom>): void {
  const depth = 1 + next(3)
  const path = Array.from({ length: depth }, () => pick(NAMES)).join('/')
  const at = Buffer.concat([Buffer.from(`${workdir}/`), Buffer.from(path, 'latin1')])
  const parent = Buffer.from(at.subarray(0, at.lastIndexOf(0x2f)))
  try {
    switch (next(10)) {
      case 0:
        return fs.rmSync(at, { recursive: true, force: true })
      case 1:
        return fs.chmodSync(at, pick([0o600, 0o644, 0o755, 0o700, 0o664, 0o775]))
      case 2:
        fs.mkdirSync(parent, { recursive: true })
        return fs.symlinkSync(pick(['../outside/secret', '/etc/passwd', 'a', 'missing', '..']), at)
      case 3:
        fs.mkdirSync(at, { recursive: true })
        return
      case 4:
        return fs.writeFileSync(`${workdir}/.gitignore`, pick(['*.log\n', 'build/\n', '*.log\nbuild\n!b/d.log\n', '']))
      case 5:
        if (next(4) > 0) return
        return fs.writeFileSync(at, LARGE)
      case 6:
        return fs.renameSync(at, Buffer.concat([parent, Buffer.from('/sub')]))
      default:
        fs.mkdirSync(parent, { recursive: true })
        // Not through a link: a write would change what it leads to.
        if (fs.lstatSync(at, { throwIfNoEntry: false })?.isSymbolicLink()) fs.unlinkSync(at)
        return fs.writeFileSync(at, pick(['one\n', 'two\r\n', '', '\0binary\xff', `random ${next(1000)}`]))
    }
  } catch {
    // What is not possible in this tree is no change.
  }
}

const SEEDS = [1, 2, 3, 4, 5, 6]

test.each(SEEDS)('a restore makes what a snapshot contains exact, and touches nothing else (seed %i)', async (seed) => {
  const random = createRandom(seed * 7919)
  await using bench = await openBench()
  const { workdir, place } = bench
  fs.mkdirSync(`${place}/outside`)
  fs.writeFileSync(`${place}/outside/secret`, 'secret')
  const outside = sorted(describeTree(`${place}/outside`))
  const kept: { id: string; commit: string; model: Map<string, string>; leftOut: readonly string[] }[] = []
  const isIn = (paths: readonly string[]) => (path: string) =>
    paths.some((left) => path === left || path.startsWith(`${left}/`))

  for (let round = 0; round < 12; round++) {
    for (let change = random.next(12); change > 0; change--) changeSomething(workdir, random)
    const id = `s${round}`
    const { written, trees } = await bench.keep(id)
    const leftOut = trees.get(fs.realpathSync(workdir))!.leftOut.map(({ path }) => path)
    kept.push({ id, commit: written.commit, leftOut, model: describeTree(workdir, isIn(leftOut)) })
    if (random.next(3) === 0) await bench.reopen()
    if (random.next(2) === 0) continue

    const target = random.pick(kept)
    const isLeft = isIn([...leftOut, ...target.leftOut])
    const before = describeTree(workdir)
    const { failed } = await bench.restore(target.commit)
    const after = describeTree(workdir)
    const untouched = (found: Map<string, string>) => sorted(new Map([...found].filter(([path]) => isLeft(path))))
    expect(untouched(after)).toEqual(untouched(before))
    // What is in the way of something else is not removed, and named.
    const isExcused = (path: string) =>
      isLeft(path) ||
      [...leftOut, ...target.leftOut].some((left) => left.startsWith(`${path}/`)) ||
      isIn(failed.map((each) => each.path))(path)
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
  expect(isEmptyPlan(planRestore(now.trees, await readSnapshot(bench.store, first.written.commit)))).toBe(true)
  expect(now.written.tree).toBe(first.written.tree)
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
