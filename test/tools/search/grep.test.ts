import { execFileSync } from 'node:child_process'
import { symlink, truncate } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { createGrep } from '../../../src/tools/search/grep.ts'
import { contextIn } from '../tool-fixture.ts'
import { openSearch, RIPGREP } from './search-fixture.ts'

const FILES = {
  'new.ts': 'export function load() {\n  return 1\n}\n',
  'src/a.py': 'def load(x):\n    return x\n\ndef save(x):\n    load(x)\n',
  'notes.md': 'Load it.\r\nload\r\n',
  'node_modules/x.js': 'load',
  '.git/x': 'load',
  binary: Buffer.from('load\0load'),
}

const openGrep = (files: Readonly<Record<string, string | Buffer>> = FILES) => openSearch(createGrep, files, RIPGREP)

describe('Grep', () => {
  test.each([
    ['files, newest first', { pattern: 'load' }, 'new.ts\nsrc/a.py\nnotes.md'],
    ['files of a type', { pattern: 'load', type: 'py' }, 'src/a.py'],
    ['files of a pattern', { pattern: 'load', glob: '*.{ts,md}' }, 'new.ts\nnotes.md'],
    ['files of a directory', { pattern: 'load', path: 'src' }, 'src/a.py'],
    ['in a directory that is left out by default', { pattern: 'load', path: 'node_modules' }, 'node_modules/x.js'],
    ['nothing', { pattern: 'nowhere' }, 'No matches found.'],
    ['lines', { pattern: '^def \\w+', output_mode: 'content' }, 'src/a.py:1:def load(x):\nsrc/a.py:4:def save(x):'],
    ['lines without numbers', { pattern: 'Load', output_mode: 'content', '-n': false }, 'notes.md:Load it.'],
    [
      'lines in either case',
      { pattern: '^load', output_mode: 'content', '-i': true },
      'notes.md:1:Load it.\nnotes.md:2:load',
    ],
    ['lines of one file', { pattern: 'return', output_mode: 'content', path: 'new.ts' }, 'new.ts:2:  return 1'],
    [
      'lines with context',
      { pattern: 'def', output_mode: 'content', '-A': 1, path: 'src' },
      'src/a.py:1:def load(x):\nsrc/a.py-2-    return x\n--\nsrc/a.py:4:def save(x):\nsrc/a.py-5-    load(x)',
    ],
    [
      'lines with context on both sides',
      { pattern: 'return', output_mode: 'content', '-C': 1, glob: '*.ts' },
      'new.ts-1-export function load() {\nnew.ts:2:  return 1\nnew.ts-3-}',
    ],
    [
      'a match over lines',
      { pattern: 'def load.*?return', output_mode: 'content', multiline: true },
      'src/a.py:1:def load(x):\nsrc/a.py:2:    return x',
    ],
    ['a line end in the pattern', { pattern: 'load\\(x\\):\n', multiline: true }, 'src/a.py'],
    ['counts', { pattern: 'load', output_mode: 'count' }, 'new.ts:1\nnotes.md:1\nsrc/a.py:2\n[4 matches in 3 files]'],
    ['a pattern that looks like an option', { pattern: '--help' }, 'No matches found.'],
  ])('finds %s', async (_, input, found) => {
    const { say } = await openGrep()
    expect(await say(input)).toBe(found)
  })

  test.each([
    [
      { pattern: 'load', output_mode: 'content', head_limit: 2 },
      'new.ts:1:export function load() {\nnotes.md:2:load\n[More than 2 lines match.]',
    ],
    [{ pattern: 'load', head_limit: 2 }, 'new.ts\nsrc/a.py\n[1 more files match.]'],
  ])('stops at its limit, and says so: %j', async (input, shown) => {
    const { call } = await openGrep()
    expect(await call(input)).toEqual({ output: shown, truncated: true })
  })

  test('shows the beginning of a match over a hundred thousand lines', async () => {
    const { call } = await openGrep({ a: `${'\n'.repeat(200_000)}x` })
    const input = { pattern: '\n+', output_mode: 'content', multiline: true, glob: 'a', head_limit: 2 }
    expect(await call(input)).toEqual({ output: 'a:1:\na:2:\n[More than 2 lines match.]', truncated: true })
  })

  test('bounds its output and its lines, and hides no secret in a cut', async () => {
    const long = `${'x'.repeat(490)}hunter2-hunter2 match ${'y'.repeat(5000)}\n`
    const { call } = await openGrep({ a: long.repeat(300) })
    const { output, truncated } = await call({ pattern: 'match', output_mode: 'content', head_limit: 2000 })
    expect(String(output).length).toBeLessThan(61_000)
    expect(output).toMatch(/more characters\]\n\[The output was cut here; narrow the search\.\]$/)
    expect(output).not.toContain('hunter2')
    expect(truncated).toBe(true)
  })

  test('takes a file name of any characters, and text that is not UTF-8', async () => {
    const { say } = await openGrep({ '-x\n"y': 'load', latin: Buffer.from([0x6c, 0x6f, 0x61, 0x64, 0xe4]) })
    expect(await say({ pattern: 'load', output_mode: 'content' })).toBe('-x\n"y:1:load\nlatin:1:load\ufffd')
  })

  test('finds what is in many files, each once', async () => {
    const many = Object.fromEntries(Array.from({ length: 150 }, (_, at) => [`f${at}`, `load ${at}`]))
    const { say } = await openGrep(many)
    const found = (await say({ pattern: 'load', output_mode: 'content', head_limit: 1000 })).split('\n')
    expect(new Set(found).size).toBe(150)
    expect(found).toHaveLength(150)
  })

  test('names the files that are too large to be searched', async () => {
    const { say, at } = await openGrep({ large: 'load', small: 'load' })
    await truncate(at('large'), 17 * 1024 * 1024)
    expect(await say({ pattern: 'load' })).toBe('small\n[Not searched, as they have more than 16 MiB: large.]')
  })

  test('follows no links, opens no pipes, and finds nothing of the server', async () => {
    const { say, call, at, server } = await openGrep({ a: 'load' })
    await symlink('a', at('b'))
    await symlink(server, at('link'))
    execFileSync('mkfifo', [at('pipe')])
    execFileSync('sh', ['-c', `echo load > ${server}/events.jsonl`])
    expect(await say({ pattern: 'load' })).toBe('a')
    expect((await call({ pattern: 'load', path: server })).error).toMatchObject({ type: 'denied' })
    expect((await call({ pattern: 'load', path: 'link/events.jsonl' })).error).toMatchObject({ type: 'denied' })
  })

  test('reports what ripgrep says of a wrong pattern or type', async () => {
    const { fault } = await openGrep()
    expect(await fault({ pattern: 'a(' })).toMatch(/ripgrep does not accept this search\..*unclosed group/s)
    expect(await fault({ pattern: 'a', type: 'klingon' })).toMatch(/unrecognized file type: klingon/)
    expect(await fault({ pattern: 'a', path: 'missing' })).toMatch(/does not exist/)
  })

  test('ends as interrupted when it is aborted', async () => {
    const { tool, workdir } = await openGrep()
    const input = tool.input.parse({ pattern: 'load' })
    const outcome = await tool.run(input, contextIn(workdir, { signal: AbortSignal.abort() }))
    expect(outcome.error?.type).toBe('interrupted')
  })
})

describe('without ripgrep, Grep', () => {
  const openPlain = () => openSearch(createGrep, FILES)
  const NOTE = '\n[ripgrep is not installed on this server, so the pattern was searched for as plain text.]'

  test.each([
    ['files', { pattern: 'load' }, 'new.ts\nnotes.md\nsrc/a.py'],
    ['lines', { pattern: 'load\\(x\\)', output_mode: 'content' }, 'src/a.py:1:def load(x):\nsrc/a.py:5:    load(x)'],
    ['counts', { pattern: 'load', output_mode: 'count', glob: '*.py' }, 'src/a.py:2'],
  ])('finds plain text and says so: %s', async (_, input, found) => {
    const { say } = await openPlain()
    expect(await say(input)).toBe(found + NOTE)
  })

  test.each([
    { pattern: 'lo+ad' },
    { pattern: '\\bload' },
    { pattern: 'load', type: 'py' },
    { pattern: 'load', '-C': 1 },
    { pattern: 'x', multiline: true },
  ])('refuses %j, and says what to use', async (input) => {
    const { fault } = await openPlain()
    expect(await fault(input)).toMatch(/ripgrep is not installed.*Use Bash: grep -rnE/)
  })
})
