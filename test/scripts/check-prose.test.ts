/** The check of the wording: what it finds, where it looks, and what it accepts. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { findBareLocals } from '../../scripts/bare-names.ts'
import {
  findBareNames,
  findBeginnings,
  findBrokenLines,
  findNames,
  findPhrases,
  findTestNames,
  identifiersOf,
  namesOfTests,
  wordsOfJson,
  wordsOfMarkdown,
  wordsOfSource,
} from '../../scripts/prose.ts'

const SCRIPT = join(import.meta.dirname, '../../scripts/check-prose.ts')

describe('a phrase is found', () => {
  test.each([
    'A call that was cut off is told as interrupted.',
    'A file that comes in has its place when it is whole.',
    'Leave it out to begin anew.',
    'Nobody is asked: who has the key may.',
    'They run behind the same wall.',
    'An empty value is none.',
    'Whoever misses them gets the whole.',
    'Detect what comes twice by its id.',
    'Answers how to give it back. Twice is fine.',
    'The client lets go of it.',
    'The stream goes on after it.',
    'List those there are.',
    'Deleting one that there is not.',
    'This is no file.',
    'Who cannot be let in gets an error.',
  ])('in: %s', (sentence) => {
    expect(findPhrases(sentence)).toMatchObject([{ line: 1, instead: expect.stringMatching(/./) }])
  })

  test('where a comment begins without a subject', () => {
    expect(findPhrases('/** Of one command. */\n/**\n * Of two.\n */\n/** Part of it. */')).toMatchObject([
      { line: 1, found: 'Of' },
      { line: 3, found: 'Of' },
    ])
  })

  test('across a line break, also one in a comment, and is reported with the line that it begins in', () => {
    expect(findPhrases('One.\nIt takes\nits place.')).toMatchObject([{ line: 2, found: 'takes its place' }])
    expect(findPhrases('/**\n * It takes\n * its place.\n */')).toMatchObject([{ line: 2 }])
  })
})

describe('a doc comment without a subject', () => {
  test.each([
    '/** For a run that waits. */',
    '/** By path. */',
    '/**\n * Where the subagents of one agent work.\n */',
    '/** Without zombies. `id` is that of the conversation. */',
    '/** Those that wait. */',
    '/** One for all conversations. */',
    '/**\n * More are not read.\n */',
    '/** Such as a URL. */',
  ])('is found: %s', (source) => {
    expect(findBeginnings(source)).toHaveLength(1)
  })

  test.each([
    '/** The key is the path. */',
    '/** Forgets what is before it. */',
    '/** Returns it. By default, all. */',
    '/** What a client asked. */',
    '/** One event of a log. */',
    '/** More rules that allow. */',
    '// In a cluster, the owner answers.',
    "glob('src/**/*.ts')",
  ])('is not: %s', (source) => {
    expect(findBeginnings(source)).toEqual([])
  })
})

test('a line of a doc comment that ends in mid-sentence is found if the next word has room on it', () => {
  const comment =
    '/**\n * It reports the location,\n * and\n * all steps use it.\n * It ends:\n * - here\n * - there\n */'
  expect(findBrokenLines(comment)).toMatchObject([{ line: 2 }, { line: 3, found: 'and' }])
  const isFilled = ` * ${'word '.repeat(19)}word`
  expect(findBrokenLines(`/**\n${isFilled}\n * another.\n */\nconst one = 1\nconst other = 2`)).toEqual([])
})

describe('the name of a test', () => {
  test.each([
    "test('and is refused', () => {",
    "test.each([1])('also after %i', () => {",
    "test('so does another one', () => {",
    "test('of two concurrent requests, one is answered', () => {",
  ])('needs no other name, and begins with its subject: %s', (source) => {
    expect(findTestNames(namesOfTests(source))).toHaveLength(1)
  })

  test.each([
    "test('of two requests is the sum', () => {",
    "test('android is a system', () => {",
    'test(\'says "and so on"\', () => {',
    "const texts = ['and is refused']",
  ])('may be: %s', (source) => {
    expect(findTestNames(namesOfTests(source))).toEqual([])
  })
})

describe('a bare participle is refused as the name of', () => {
  test.each([
    'type Kept = string',
    'export type Asked = {}',
    'class Refused extends Error {}',
    'export function updated(): void {}',
    'export const offered = 1',
    'type Options = { readonly left: number }',
    'class Log {\n  #known = new Map()\n}',
  ])('a declaration: %s', (source) => {
    expect(findBareNames(identifiersOf(source))).toHaveLength(1)
  })

  test.each([
    'type KeptKey = string',
    'export const DONE = 0',
    'export type Need = {}',
    'const left = 1',
    'type Counts = { readonly removed: number; readonly bytesLeft: number }',
    'export const isRefused = true',
  ])('none of these: %s', (source) => {
    expect(findBareNames(identifiersOf(source))).toEqual([])
  })
})

describe('a bare participle is refused inside a function as the name of', () => {
  test.each([
    ['a variable', 'let left = 1'],
    ['a function', 'const f = () => {\n  function parsed() {}\n}'],
    ['a parameter', 'const f = (given: string, { known: [kept] = [] }: Options, ...asked: string[]) => {}'],
    ['a parameter of a method', 'class Log {\n  append(stored: number): void {}\n}'],
    ['what a loop takes', 'for (const { 0: found } of matches) use(found)'],
    ['what a pattern renames or collects', 'const { text: said, ...shown } = message'],
  ])('%s', (_, source) => {
    expect(findBareLocals(source, 'a.ts')).not.toEqual([])
  })

  test.each([
    ['a name with a noun', 'const keptKeys = (givenKey: string) => keyOf(givenKey)'],
    ['a field of that name', 'const f = ({ archived }: View) => ({ archived, removed: 1 }).removed'],
    ['a verb', 'const f = (read: (path: string) => string) => read(path)'],
    ['a noun', 'const feed = openFeed()'],
  ])('not: %s', (_, source) => {
    expect(findBareLocals(source, 'a.ts')).toEqual([])
  })

  test('a component, with its line', () => {
    expect(findBareLocals('\nconst draw = () => ids.map((found) => <b>{found}</b>)', 'a.tsx')).toMatchObject([
      { line: 2, found: 'found' },
    ])
  })
})

test.each([
  'There is no database.',
  'There is none.',
  'It is no longer used.',
  'A firewall, and the wall clock.',
  'Interrupted calls are reported as such and never re-run.',
  'The untold story of a foretold end.',
])('is not found in: %s', (sentence) => {
  expect(findPhrases(sentence)).toEqual([])
})

test('code, code blocks and link targets are not checked', () => {
  const page = 'Run `begin anew`, see [more](anew.md).\n```\ntold\n```\nIt is told.'
  expect(findPhrases(wordsOfMarkdown(page))).toMatchObject([{ line: 5, found: 'told' }])
})

test('comments and string literals are the words of a source; identifiers are not', () => {
  const source = "const told = wall(anew)\n// begins anew\nthrow new Error('is told')\n/* the\n wall */"
  expect(findPhrases(wordsOfSource(source)).map(({ line }) => line)).toEqual([2, 3, 5])
})

test('a vague word is found in the names of a source, not in its comments and strings', () => {
  const source =
    "const toldAs = #isTold\n// told\nunfolded(bold, firewall, 'told')\nold.passOver()\nTold<Deed>\nrunInTurn()"
  const findings = findNames(identifiersOf(source))
  expect(findings.map(({ line, found }) => [line, found])).toEqual([
    [1, 'told'],
    [1, 'Told'],
    [4, 'passOver'],
    [5, 'Told'],
    [5, 'Deed'],
    [6, 'InTurn'],
  ])
})

test('the names in calls of describe and test are the names of tests; other texts are not', () => {
  const source = [
    "describe('it begins anew', () => {",
    "  test.each([['anew', 1]])('is told', () => {",
    "    say('anew') // anew",
    '    test.skipIf(isRoot())(`is told`, () => {})',
  ]
  expect(findPhrases(namesOfTests(source.join('\n'))).map(({ line }) => line)).toEqual([1, 2, 4])
})

test('descriptions and summaries are the words of a JSON document; names, enums and examples are not', () => {
  const document = { shown: { summary: 'Begins anew', description: 'Is told.', enum: ['told'], example: 'told' } }
  expect(findPhrases(wordsOfJson(JSON.stringify(document))).map(({ found }) => found)).toEqual(['anew', 'told'])
})

describe('the command', () => {
  const CLEAN = {
    'README.md': 'Hello.',
    'openapi/openapi.json': '{}',
    'src/a.ts': '// fine',
    'test/a.test.ts': "test('works')",
  }

  test('passes a project without phrases', async () => {
    expect(await check(CLEAN)).toMatchObject({ code: 0 })
  })

  test.each(['README.md', 'CHANGELOG.md', 'docs/a.md', '.env.example'])('fails for one in %s', async (path) => {
    expect(await check({ ...CLEAN, [path]: 'Begins anew.' })).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`${path}:1: "anew"`),
    })
  })

  test.each([
    ['src/a.ts', '// anew'],
    ['bench/b.ts', '// anew'],
    ['test/a.test.ts', "test('begins anew', () => {})"],
  ])('fails for one in %s', async (path, text) => {
    expect(await check({ ...CLEAN, [path]: text })).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`${path}:1: "anew"`),
    })
  })

  test('fails for a doc comment that begins without a subject', async () => {
    expect(await check({ ...CLEAN, 'src/a.ts': '/** By path. */' })).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('src/a.ts:1: "By"'),
    })
  })

  test.each(['src/a.ts', 'scripts/a.ts', 'bench/a.ts', 'test/support/a.ts'])(
    'fails for a vague name in %s',
    async (path) => {
      expect(await check({ ...CLEAN, [path]: 'export let toldAs = 1' })).toMatchObject({
        code: 1,
        stderr: expect.stringContaining(`${path}:1: "told"`),
      })
    },
  )
})

test('the command fails for a bare participle as a local variable of src, and not of a test', async () => {
  const files = { 'README.md': 'Hello.', 'openapi/openapi.json': '{}', 'test/a.test.ts': 'let left = 1' }
  expect(await check({ ...files, 'src/a.ts': 'let leftBytes = 1' })).toMatchObject({ code: 0 })
  expect(await check({ ...files, 'src/a.ts': 'let left = 1' })).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('src/a.ts:1: "left"'),
  })
})

async function check(files: Record<string, string>): Promise<{ code: number; stderr: string }> {
  const root = await mkdtemp(join(tmpdir(), 'agent-server-prose-'))
  onTestFinished(() => rm(root, { recursive: true, force: true }))
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true })
    await writeFile(join(root, path), text)
  }
  try {
    const { stderr } = await promisify(execFile)(process.execPath, [SCRIPT, '--root', root])
    return { code: 0, stderr }
  } catch (error) {
    return error as { code: number; stderr: string }
  }
}
