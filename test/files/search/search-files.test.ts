import { execFileSync } from 'node:child_process'
import { mkdir, readFile, readdir, readlink, symlink, truncate, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { SearchFiles } from '../../../src/contract/files.ts'
import { parseJailPath } from '../../../src/files/jail/jail-path.ts'
import { searchFiles } from '../../../src/files/search/search-files.ts'
import { createRandom } from '../../support/random.ts'
import type { JailBench } from '../jail-fixture.ts'
import { setJail } from '../jail-fixture.ts'
import { until } from '../../support/until.ts'
import { processorMsOf } from '../../support/processor-time.ts'

/** Debian's package `ripgrep`; these tests fail without it. */
const RIPGREP = execFileSync('bash', ['-c', 'command -v rg']).toString().trim()

const ENGINES = [
  ['ripgrep', RIPGREP],
  ['our own search', undefined],
] as const

async function fill(bench: JailBench, files: Readonly<Record<string, string | Buffer>>): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(bench.inside(path)), { recursive: true })
    await writeFile(bench.inside(path), content)
  }
}

async function search(bench: JailBench, query: Record<string, string>, ripgrep?: string, more = {}) {
  const parsed = SearchFiles.parse(query)
  const deps = { ripgrep, redact: (line: string) => line, signal: new AbortController().signal, ...more }
  return await searchFiles(bench.jail, parseJailPath(parsed.path), parsed, deps)
}

/** How many bytes a process has read so far, from any file. */
const readBy = async (pid: string | number): Promise<number> =>
  Number(/^rchar: (\d+)/m.exec(await readFile(`/proc/${pid}/io`, 'utf8').catch(() => ''))?.[1] ?? 0)

/** Returns the processes that have the file open: of this one and those that it started. */
async function holdersOf(path: string): Promise<string[]> {
  const children = await readFile(`/proc/self/task/${process.pid}/children`, 'utf8')
  const pids = [String(process.pid), ...children.split(' ').filter(Boolean)]
  const holds = async (pid: string) => {
    const names = await readdir(`/proc/${pid}/fd`).catch(() => [])
    const targets = names.map((name) => readlink(`/proc/${pid}/fd/${name}`).catch(() => ''))
    return (await Promise.all(targets)).includes(path) ? [pid] : []
  }
  return (await Promise.all(pids.map(holds))).flat()
}

const linesOf = ({ items }: Awaited<ReturnType<typeof search>>) =>
  items.map(({ path, line, text }) => (line === undefined ? path : `${path}:${line}:${text ?? '-'}`))

describe('by name', () => {
  const FILES = { 'a.ts': '', 'src/b.ts': '', 'src/deep/C.TS': '', 'src/deep/notes.md': '', '.git/config': '' }

  test.each([
    ['*.ts', ['a.ts', 'src/b.ts']],
    ['src/*.ts', ['src/b.ts']],
    ['src/**', ['src/b.ts', 'src/deep', 'src/deep/C.TS', 'src/deep/notes.md']],
    ['.ts', ['a.ts', 'src/b.ts', 'src/deep/C.TS']],
    ['NOTE', ['src/deep/notes.md']],
    ['config', ['.git/config']],
    ['[bc].ts', ['src/b.ts']],
    ['nothing', []],
  ])('%s', async (q, found) => {
    await using bench = await setJail()
    await fill(bench, FILES)
    expect(linesOf(await search(bench, { q }))).toEqual(found)
  })

  test('in a directory, with patterns for the path from there', async () => {
    await using bench = await setJail()
    await fill(bench, FILES)
    expect(linesOf(await search(bench, { q: 'deep/*', path: 'src' }))).toEqual(['src/deep/C.TS', 'src/deep/notes.md'])
  })

  test('up to a limit, and says so', async () => {
    await using bench = await setJail()
    await fill(bench, FILES)
    expect(await search(bench, { q: '.ts', limit: '2' })).toMatchObject({ items: [{}, {}], truncated: true })
    expect(await search(bench, { q: '.ts', limit: '3' })).toMatchObject({ items: [{}, {}, {}], truncated: false })
  })
})

describe.each(ENGINES)('by content, with %s', (_name, ripgrep) => {
  test.each<[string, Record<string, string | Buffer>, Record<string, string>, string[]]>([
    ['a text as it is', { a: 'x.y\nxzy\n' }, { content: 'x.y' }, ['a:1:x.y']],
    ['each line once', { a: 'foo foo\nbar\nfoo' }, { content: 'foo' }, ['a:1:foo foo', 'a:3:foo']],
    ['in any case, of ASCII', { a: 'Foo\nÄ\nä' }, { content: 'fOO', ignore_case: 'true' }, ['a:1:Foo']],
    ['not in any case, of others', { a: 'Ä\nä' }, { content: 'Ä', ignore_case: 'true' }, ['a:1:Ä']],
    ['in the case it is in', { a: 'Foo' }, { content: 'foo' }, []],
    ['lines that end in both', { a: 'one\r\ntwo\r\n' }, { content: 'two' }, ['a:2:two']],
    [
      'hidden and ignored files',
      { '.gitignore': 'b\n', b: 'foo', '.c/d': 'foo' },
      { content: 'foo' },
      ['.c/d:1:foo', 'b:1:foo'],
    ],
    [
      'what has bytes that are no text',
      { a: Buffer.from([0xff, 0x66, 0x6f, 0x6f]) },
      { content: 'foo' },
      ['a:1:\ufffdfoo'],
    ],
    ['no binary files', { a: Buffer.from('foo\0foo'), b: 'foo' }, { content: 'foo' }, ['b:1:foo']],
    ['what is text at its beginning', { a: `${'x\n'.repeat(5000)}\0\nfoo` }, { content: 'foo' }, ['a:5002:foo']],
    ['files with a name, too', { 'a.ts': 'foo', 'b.md': 'foo' }, { content: 'foo', q: '*.ts' }, ['a.ts:1:foo']],
    ['in a directory', { a: 'foo', 'd/b': 'foo' }, { content: 'foo', path: 'd' }, ['d/b:1:foo']],
    ['a text that looks like an option', { a: '--files' }, { content: '--files' }, ['a:1:--files']],
    ['a file with a name like an option', { '--files': 'foo' }, { content: 'foo' }, ['--files:1:foo']],
    ['a text beyond ASCII', { a: 'grüße 😀' }, { content: 'üße 😀' }, ['a:1:grüße 😀']],
    ['no UTF-16, whatever its mark says', { a: Buffer.from('\ufefffoo', 'utf16le') }, { content: 'foo' }, []],
    ['nothing in an empty file', { a: '' }, { content: 'foo' }, []],
  ])('finds %s', async (_what, files, query, found) => {
    await using bench = await setJail()
    await fill(bench, files)
    expect(linesOf(await search(bench, query, ripgrep))).toEqual(found)
  })

  test('of a long line, shows the context; of a very long one, only its line number', async () => {
    await using bench = await setJail()
    await fill(bench, { a: `${'x'.repeat(2000)}needle${'y'.repeat(2000)}`, b: `${'z'.repeat(600_000)}needle` })
    const [long, huge] = (await search(bench, { content: 'needle' }, ripgrep)).items
    expect(long!.text).toMatch(/^…x{100}needley+…$/)
    expect(huge).toEqual({ path: 'b', type: 'file', line: 1 })
  })

  test('in a very long line, a text is found wherever it begins', async () => {
    await using bench = await setJail()
    // Around the ends of pieces that are read, after more of the line than is kept.
    const starts = [5, 6, 7, 8].flatMap((pieces) => [5, 3, 1].map((before) => pieces * 65_536 - before))
    const files = starts.map((start) => [String(start), `${'z'.repeat(start)}needle${'z'.repeat(100_000)}`] as const)
    await fill(bench, Object.fromEntries(files))
    const { items } = await search(bench, { content: 'needle' }, ripgrep)
    expect(items.map(({ path }) => Number(path))).toEqual(starts)
  })

  test('redacts secrets in its results', async () => {
    await using bench = await setJail()
    await fill(bench, { a: `token=hunter2-hunter2 ${'x'.repeat(3000)}` })
    const redact = (line: string) => line.replaceAll('hunter2-hunter2', '<secret:T>')
    const { items } = await search(bench, { content: 'token' }, ripgrep, { redact })
    expect(items[0]!.text).toMatch(/^token=<secret:T> x+…$/)
  })

  test('follows no link, and stays in the workdir', async () => {
    await using bench = await setJail()
    await symlink('../outside', bench.inside('dir'))
    await symlink('../outside/canary', bench.inside('file'))
    expect(linesOf(await search(bench, { content: 'canary' }, ripgrep))).toEqual([])
  })

  test('ends at its time limit, with the results so far', async () => {
    await using bench = await setJail()
    await fill(bench, { a: 'foo', b: 'foo' })
    const { truncated } = await search(bench, { content: 'foo' }, ripgrep, { signal: AbortSignal.abort() })
    expect(truncated).toBe(true)
  })
})

describe('a search in malicious files', () => {
  const MIB = 1024 * 1024
  const LINE = `${'y'.repeat(1023)}\n`

  test.each(ENGINES)(
    'an endless line uses no memory and does not hide other files, with %s',
    async (_name, ripgrep) => {
      await using bench = await setJail()
      await fill(bench, {
        'a-huge': 'x'.repeat(9000),
        'b-small': 'needle',
        'c-large': LINE.repeat(17 * 1024).concat('needle'),
      })
      await truncate(bench.inside('a-huge'), 2 ** 40)
      const before = process.memoryUsage().rss
      const own = new Map([[String(process.pid), await readBy(process.pid)]])
      const end = new AbortController()
      const searched = search(bench, { content: 'needle' }, ripgrep, { signal: end.signal })
      // Never over by itself: the huge file comes last but one, and has a terabyte.
      void until('the search in it', async () => {
        const [holder] = await holdersOf(bench.inside('a-huge'))
        // More than all the other files have.
        return holder !== undefined && (await readBy(holder)) - (own.get(holder) ?? 0) > 64 * MIB
      }).then(() => end.abort())
      const { items, truncated, skipped } = await searched
      expect(linesOf({ items, truncated })).toEqual(['b-small:1:needle'])
      expect({ truncated, skipped }).toEqual({ truncated: true, skipped: ['a-huge', 'c-large'] })
      expect(process.memoryUsage().rss - before).toBeLessThan(300 * MIB)
    },
  )

  test.each(ENGINES)('large files are found, after the others, with %s', async (_name, ripgrep) => {
    await using bench = await setJail()
    const large = `${LINE.repeat(17 * 1024)}needle`
    await fill(bench, { 'a/large': large, b: 'needle', 'a.large': large, 'a/small': 'needle' })
    const found = await search(bench, { content: 'needle' }, ripgrep)
    expect(found.items.map(({ path }) => path)).toEqual(['a/small', 'b', 'a/large', 'a.large'])
    expect(found.truncated).toBe(false)
  })

  test('the program runs under a memory limit, and an interrupted one is reported', async () => {
    await using bench = await setJail()
    await fill(bench, { a: 'needle', b: 'needle' })
    const program = join(bench.outside, 'rg')
    const search_ = async (script: string) => {
      await writeFile(program, `#!/bin/bash\n${script}\n`, { mode: 0o700 })
      return await search(bench, { content: 'needle' }, program)
    }
    const limited = await search_(`[ "$(ulimit -v)" = 524288 ] && printf './a\\0'`)
    expect([linesOf(limited), limited.truncated]).toEqual([['a:1:needle'], false])
    const killed = await search_(`printf './a\\0'; kill -ABRT $$`)
    expect([linesOf(killed), killed.truncated]).toEqual([['a:1:needle'], true])
  })

  test('a pattern over many names leaves everybody else their turn', async () => {
    await using bench = await setJail()
    await mkdir(bench.inside('many'))
    const names = Array.from({ length: 1000 }, (_, at) => 'a'.repeat(200) + at)
    for (const name of names) await writeFile(bench.inside('many', name), '')
    let turns = 0
    const timer = setInterval(() => ++turns, 0)
    const ms = await processorMsOf(async () => {
      expect(await search(bench, { q: `${'*a'.repeat(499)}b` })).toEqual({ items: [], truncated: false })
    })
    clearInterval(timer)
    // Each turn of the loop is one that somebody else could have had: at least one for 200 ms of work.
    expect(turns).toBeGreaterThan(ms / 200)
  })

  test('a search by name ends at its time limit even if it finds nothing', async () => {
    await using bench = await setJail()
    await fill(bench, { a: '', b: '' })
    const found = await search(bench, { q: 'nothing' }, undefined, { signal: AbortSignal.abort() })
    expect(found).toEqual({ items: [], truncated: true })
  })
})

test('both return the same results in the same order, whatever the tree and the position of the text', async () => {
  await using bench = await setJail()
  const random = createRandom(20_260_101)
  const words = ['needle', 'NEEDLE', 'neeedle', 'x', 'nee\ndle', '\n', ' ', 'é', '\r\n', 'needl', 'y'.repeat(700)]
  const files = Array.from({ length: 90 }, () => {
    const depth = random.below(4)
    const path = Array.from({ length: depth + 1 }, () => random.pick(['a', 'b.c', 'B', '-', 'é', '.h', 'a b'])).join(
      '/',
    )
    // Some begin around where pieces of a file meet.
    const start = random.below(8) ? '' : 'p'.repeat(262_144 - random.below(8))
    return [`${path}~`, start + Array.from({ length: random.below(40) }, () => random.pick(words)).join('')] as const
  })
  await fill(bench, Object.fromEntries(files))
  for (const content of ['needle', 'é', 'e'])
    for (const ignore_case of ['true', 'false'])
      for (const limit of ['1000', '7']) {
        const [ripgrep, own] = await Promise.all(
          ENGINES.map(([, engine]) => search(bench, { content, ignore_case, limit }, engine)),
        )
        expect(ripgrep).toEqual(own)
        expect(own!.items.length).toBeGreaterThan(5)
      }
})
