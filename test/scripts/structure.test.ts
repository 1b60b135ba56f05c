/** The measures of the sources: what counts, what is too much, and how parts depend on each other. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { arrowsBetween, modulesOf, mutualPairs, nestedPairs, upwardArrows } from '../layers/folder-arrows.ts'
import { foldersOf, measureSource, quantile, repeatedTypes } from '../../scripts/source-measures.ts'
import { parseSource } from '../layers/imports.ts'
import { traceJourneys } from '../../scripts/journeys.ts'

const SCRIPT = join(import.meta.dirname, '../../scripts/structure.ts')

describe('a source', () => {
  test('has the functions with a name, each with its callbacks, and methods', () => {
    const { functions } = measureSource(
      'a.ts',
      'function one() {\n  list.map((x) => {\n    return x\n  })\n}\nconst two = () => 2\nclass A {\n  three() {\n  }\n}\n',
    )
    expect(functions).toEqual([
      { name: 'one', line: 1, lines: 5 },
      { name: 'two', line: 6, lines: 1 },
      { name: 'three', line: 8, lines: 2 },
    ])
  })

  test('counts assertions, but not `as const`', () => {
    expect(measureSource('a.ts', 'f(a!, b!.c, d as E, [1] as const)')).toMatchObject({ nonNull: 2, casts: 1 })
  })

  test('has as many lines as are written', () => {
    expect(measureSource('a.ts', 'a\nb\nc\n').lines).toBe(3)
  })
})

test('a type that two files export is found, however it is declared', () => {
  const files = [
    measureSource('a.ts', 'export type Same = 1\nexport type Other = 2\nexport const Both = 1\nexport type Both = 1'),
    measureSource('b.ts', 'export class Same {}\ntype Other = 3'),
  ]
  expect(repeatedTypes(files)).toEqual(new Map([['Same', ['a.ts', 'b.ts']]]))
})

test('a folder has the files that lie directly in it', () => {
  const files = ['a.ts', 'b/c.ts', 'b/d/e.ts'].map((path) => measureSource(path, 'x\ny'))
  expect(foldersOf(files)).toEqual([
    { path: '.', files: 1, lines: 2 },
    { path: 'b', files: 1, lines: 2 },
    { path: 'b/d', files: 1, lines: 2 },
  ])
})

test('the median and the 90 % of a list', () => {
  const values = [10, 1, 9, 2, 8, 3, 7, 4, 6, 5]
  expect([quantile(values, 0.5), quantile(values, 0.9), quantile(values, 1), quantile([], 0.5)]).toEqual([5, 9, 10, 0])
})

describe('folders', () => {
  const sources = [
    parseSource('a/one.ts', "import { b } from '../b/two.ts'\nimport type { I } from './inner/three.ts'"),
    parseSource('a/inner/three.ts', "import { one } from '../one.ts'"),
    parseSource('b/two.ts', "const later = () => import('../c/four.ts')"),
    parseSource('b/more.ts', "import { one } from '../a/one.ts'\nimport '../c/four.ts'"),
    parseSource('c/four.ts', "import { z } from 'zod'"),
  ]
  const arrows = arrowsBetween(sources)
  const namesOf = (all: readonly { from: string; to: string }[]) => all.map(({ from, to }) => `${from} -> ${to}`)

  test('have an arrow to each folder that a file in them imports from', () => {
    expect(namesOf(arrows)).toEqual(['a -> b', 'a -> a/inner', 'a/inner -> a', 'b -> c', 'b -> a'])
    expect(arrows.map(({ imports }) => imports)).toEqual([1, 1, 1, 2, 1])
  })

  test('are a pair if they import each other, and neither contains the other', () => {
    expect(mutualPairs(arrows).map(namesOf)).toEqual([['a -> b', 'b -> a']])
  })

  test('are a nested pair if they import each other, and one contains the other', () => {
    expect(nestedPairs(arrows).map(namesOf)).toEqual([['a -> a/inner', 'a/inner -> a']])
  })

  test('have upward arrows only where no order is without them', () => {
    expect(upwardArrows(arrows)).toHaveLength(2)
    expect(upwardArrows(arrows.filter(({ to }) => to !== 'a'))).toEqual([])
  })

  test('load what their files import at once or later, without what is only a type', () => {
    expect([...modulesOf('a/one.ts', sources)]).toEqual(['a/one.ts', 'b/two.ts', 'c/four.ts'])
  })
})

test('a journey has the files of the server that run for it, and none that only a timer or a client runs', async () => {
  const journeys = new Map((await traceJourneys()).map((journey) => [journey.name, [...journey.files.keys()]]))
  expect(journeys.get('message')).toContain('agent/loop.ts')
  expect(journeys.get('approval')).toContain('policy/turn-gate.ts')
  expect(journeys.get('MCP call')).toContain('mcp/connection.ts')
  expect(journeys.get('subagent')).toContain('conversations/subagents/subagents.ts')
  expect(journeys.get('create')).toContain('conversations/create.ts')
  expect(journeys.get('query()')).toContain('sdk/query.ts')
  for (const part of ['limits/limit-watch.ts', 'client/', 'llm/scripted/', 'mcp/'])
    expect(journeys.get('message')?.filter((path) => path.startsWith(part))).toEqual([])
})

describe('the check', () => {
  const lines = (count: number) => 'x\n'.repeat(count)

  test('fails for each file, function, circle and name that breaks a rule', async () => {
    const { code, stderr } = await check({
      'src/long.ts': lines(301),
      'src/f.ts': `function f() {\n${lines(79)}}`,
      'src/a.ts': "import './b.ts'\nexport type T = 1",
      'src/b.ts': "import './a.ts'\nexport type T = 1",
    })
    expect(code).toBe(1)
    for (const message of [
      'long.ts has 301 lines',
      'f.ts#f has 81 lines',
      'a tenth of the functions has 81 lines',
      'a.ts -> b.ts -> a.ts',
      'T is exported by a.ts and b.ts',
    ])
      expect(stderr).toContain(message)
  })

  test('passes what keeps to the limits', async () => {
    const files = { 'src/a.ts': `function f() {\n${lines(16)}}\n${lines(282)}` }
    expect(await check(files)).toMatchObject({ code: 0, stderr: '' })
  })

  test('fails for a file of at most 25 lines with one user', async () => {
    const user = "import { x } from './small.ts'"
    const { code, stderr } = await check({ 'src/http/user.ts': user, 'src/http/small.ts': lines(25) })
    expect(code).toBe(1)
    expect(stderr).toBe('http/small.ts has 25 lines and one user; move it into http/user.ts.\n')
  })

  test.each([
    ['longer', { 'http/user.ts': "import './small.ts'", 'http/small.ts': lines(26) }],
    ['that two files use', { 'http/user.ts': "import './small.ts'", 'http/b.tsx': "import './small.ts'" }],
    ['that is loaded when it is used', { 'http/user.ts': "const load = () => import('./small.ts')" }],
    ['whose user would have more than 300 lines', { 'http/user.ts': `import './small.ts'\n${lines(298)}` }],
    ['without JSX of a user with JSX', { 'ui/user.tsx': "import './small.ts'", 'ui/small.ts': lines(2) }],
    ['that is a tool', { 'tools/registry.ts': "import './small.ts'", 'tools/small.ts': lines(2) }],
    [
      'that does what its user may not do',
      { 'cli/user.ts': "import '../config/env.ts'", 'config/env.ts': 'const { env } = process' },
    ],
  ])('passes a file %s', async (_, files) => {
    const all = Object.entries({ 'http/small.ts': lines(2), ...files }).map(([path, text]) => [`src/${path}`, text])
    expect(await check(Object.fromEntries(all))).toMatchObject({ code: 0, stderr: '' })
  })
})

async function check(files: Record<string, string>): Promise<{ code: number; stderr: string }> {
  const root = await project(files)
  return await run(root, '--check')
}

async function project(files: Record<string, string>): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'agent-server-structure-'))
  onTestFinished(() => rm(root, { recursive: true, force: true }))
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true })
    await writeFile(join(root, path), text)
  }
  return root
}

async function run(root: string, ...args: string[]): Promise<{ code: number; stderr: string }> {
  try {
    const { stderr } = await promisify(execFile)(process.execPath, [SCRIPT, '--root', root, ...args])
    return { code: 0, stderr }
  } catch (error) {
    return error as { code: number; stderr: string }
  }
}
