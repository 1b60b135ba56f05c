import { mkdtempDisposableSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { FOLDERS, readSources, sample, show } from '../../scripts/mutate/code.ts'
import { findMutants, mutated, parses } from '../../scripts/mutate/find-mutants.ts'
import { judge } from '../../scripts/mutate/judge.ts'
import { ReachNotes } from '../../scripts/mutate/reach.ts'
import type { Judged } from '../../scripts/mutate/report.ts'
import { noticedShare, report } from '../../scripts/mutate/report.ts'
import { withSwitches } from '../../scripts/mutate/switched.ts'
import { readEquivalents, Verdicts } from '../../scripts/mutate/verdicts.ts'

const FILE = 'src/agent/sample.ts'
const ROOT = join(import.meta.dirname, '../..')

/** What the text becomes, by mutant. */
const broken = (text: string): string[] => findMutants(FILE, text).map((mutant) => mutated(mutant, text))

describe('a mutant is made', () => {
  test.each([
    ['of a comparison', 'f(a < b)', ['f(a <= b)', 'f(a >= b)']],
    ['of a condition', 'if (a) throw b', ['if (true) throw b', 'if (false) throw b', 'if (a) {}']],
    ['of a choice with a default', 'f(a ?? b)', ['f(((a) && (b)))']],
    ['of a calculation', 'f(a - 1)', ['f(a + 1)']],
    ['of a literal', 'f(true, "x", "")', ['f(false, "x", "")', `f(true, '', "")`, `f(true, "x", 'mutant')`]],
    ['of each property', 'f({ a, b })', ['f({})', 'f({ b })', 'f({ a })']],
    ['of a list', 'f([a])', ['f([])']],
    ['of a function', 'const f = () => a', ['const f = () => undefined']],
    [
      'of what is returned',
      'const f = () => { return a }',
      ['const f = () => {}', 'const f = () => { return undefined }'],
    ],
    ['of each optional step', 'f(a?.b?.[0])', ['f(a?.b[0])', 'f(a.b?.[0])']],
    ['of a call that selects', 'f(a.filter(b))', ['f((a))']],
    ['of a call with an opposite', 'f(a.some(b))', ['f(a.every(b))']],
    ['of each part of an expression', 'f(/^a+$/)', ['f(/a+$/)', 'f(/^a*$/)', 'f(/^a+/)']],
  ])('%s', (_what, text, expected) => {
    // Without the whole statement, which is left out as well.
    const found = broken(text).filter((other) => other !== '{}')
    expect(found.toSorted()).toEqual(expected.toSorted())
  })
})

describe('no mutant is made', () => {
  test.each([
    ['of a type', 'type A = "a" | true\nlet a: { b: "c" } = d as "e"'],
    ['of an import', 'import a from "a"\nexport { b } from "b"\nexport * from "c"'],
    ['of a comment', '/** Returns true. */\n// if (a < b)'],
    ['of a message for the log', 'log.warn({ a: true }, "b")\nthis.#log?.error("c")'],
    ['of a directive', '"use strict"'],
    ['of what types exclude', 'a satisfies never'],
    ['of the name of a property in a type', 'let a: { "b": 1 }'],
  ])('%s', (_what, text) => {
    expect(broken(text)).toEqual([])
  })

  test('of the text of an error', () => {
    expect(broken('throw new Error("a")')).toEqual(['{}'])
  })

  test('of a returned value that types exclude', () => {
    expect(broken('const f = () => { return a satisfies never }')).toEqual(['const f = () => {}'])
  })

  test('that is not TypeScript any more', () => {
    const text = 'const a = b'
    const [change, target] = [
      { start: 10, end: 11, text: '(' },
      { kind: 'expression' as const, start: 10, end: 11 },
    ]
    expect(parses({ id: '', file: FILE, change, target, isStatic: true }, text)).toBe(false)
  })
})

describe('code with all of its mutants', () => {
  const TEXT = `let log = []
const add = (text, ...more) => { log = [...log, text, ...more] }
const box = { limit: 2, allows(n) { return n < this.limit && n !== -1 } }
for (const n of [1, 2, 3]) {
  if (!box.allows(n)) continue
  add(box?.allows(n) ? \`yes \${n}\` : 'no', ...[n].filter((one) => one > 0))
}
(log.length > 1) && add('many')
return log.join()`

  /** Runs the code with one of them on. */
  const run = (on?: string): unknown => {
    const mutants = findMutants(FILE, WRAPPED).filter((mutant) => parses(mutant, WRAPPED))
    const text = withSwitches(WRAPPED, mutants).replace(/^import[^;]*;/, 'const $loads = () => {};')
    // oxlint-disable-next-line typescript/no-implied-eval -- the text is the one above
    return new Function('$on', `${text}\nreturn f()`)((id: string) => id === on)
  }
  const WRAPPED = `function f() {\n${TEXT}\n}`

  test('does the same while none is on', () => {
    expect(run()).toBe('yes 1,1,many')
  })

  test('does with one on what its text alone would do', () => {
    const alone = (text: string): unknown => {
      try {
        // oxlint-disable-next-line typescript/no-implied-eval -- the text is the one above
        return new Function(`${text}\nreturn f()`)()
      } catch (error) {
        return (error as Error).name
      }
    }
    const switched = (id: string): unknown => {
      try {
        return run(id)
      } catch (error) {
        return (error as Error).name
      }
    }
    const mutants = findMutants(FILE, WRAPPED)
    expect(mutants.length).toBeGreaterThan(30)
    for (const mutant of mutants) {
      const text = mutated(mutant, WRAPPED)
      expect({ text, does: switched(mutant.id) }).toEqual({ text, does: alone(text) })
    }
  })

  test('keeps the numbers of its lines', () => {
    const lines = withSwitches(WRAPPED, findMutants(FILE, WRAPPED)).split('\n')
    expect(lines.at(-2)).toContain('}')
    expect(lines[1]).toMatch(/^\s*.*let log/)
  })
})

describe('a sample', () => {
  const sources = new Map([[FILE, 'export const f = (a, b) => { if (a < b) return [a, b]\n return { a, b } }']])

  test('is the same for the same seed, another one for another, and a smaller one is the start of a larger', () => {
    const ids = (seed: number, count: number) => sample(sources, 'src/agent', seed, count).map(({ id }) => id)
    expect(ids(1, 4)).toEqual(ids(1, 4))
    expect(ids(1, 8)).not.toEqual(ids(2, 8))
    expect(ids(1, 8).slice(0, 4)).toEqual(ids(1, 4))
    expect(new Set(ids(1, 8)).size).toBe(8)
  })

  test('shows the lines before and after', () => {
    const mutant = findMutants(FILE, sources.get(FILE)!).find(({ change }) => change.text === 'a <= b')!
    const shown = show(mutant, sources.get(FILE)!)
    expect(shown.line).toBe(1)
    expect(shown.before).toBe('export const f = (a, b) => { if (a < b) return [a, b]')
    expect(shown.after).toBe('export const f = (a, b) => { if (a <= b) return [a, b]')
  })

  test('finds code in each part of the core', () => {
    const files = [...readSources(ROOT).keys()]
    for (const folder of Object.values(FOLDERS))
      expect(files.filter((file) => file.startsWith(`${folder}/`)).length, folder).toBeGreaterThan(5)
  })
})

describe('a run that was ended', () => {
  const JUDGED: Judged = {
    id: `${FILE}:1`,
    part: 'agent',
    file: FILE,
    line: 3,
    before: 'a < b',
    after: 'a <= b',
    verdict: 'survived',
    against: 'these tests',
    ms: 5,
  }

  test('knows its verdicts again, and repeats what had survived other tests', () => {
    using directory = mkdtempDisposableSync(join(tmpdir(), 'mutate-'))
    const file = join(directory.path, 'verdicts.jsonl')
    const caught: Judged = { ...JUDGED, id: `${FILE}:2`, verdict: 'caught', by: 'a test' }
    for (const one of [JUDGED, caught]) new Verdicts(file).add(one)
    // The last line was cut off.
    writeFileSync(file, `${readFileSync(file, 'utf8')}{"id":"${FILE}:3","verd`)
    const again = new Verdicts(file)
    expect(again.get(JUDGED.id, 'these tests')).toEqual(JUDGED)
    expect(again.get(JUDGED.id, 'more tests')).toBeUndefined()
    expect(again.get(caught.id, 'more tests')).toEqual(caught)
    expect(again.get(`${FILE}:3`, 'these tests')).toBeUndefined()
  })

  test('knows which tests are noted, except those that were changed or failed', () => {
    using directory = mkdtempDisposableSync(join(tmpdir(), 'mutate-'))
    const [root, state] = [directory.path, join(directory.path, 'state')]
    for (const name of ['a', 'b', 'c']) writeFileSync(join(root, name), name)
    const notes = new ReachNotes(root, state)
    notes.add('a', { passed: true, ms: 1 })
    notes.add('b', { passed: true, ms: 1 })
    notes.add('c', { passed: false, ms: 1 })
    writeFileSync(join(root, 'b'), 'changed')
    expect(new ReachNotes(root, state).missing(['a', 'b', 'c', 'a'])).toEqual(['b', 'c'])
  })

  test('counts a mutant as noticed only if a test noticed it, and lists it unless it is called equivalent', () => {
    const caught: Judged = { ...JUDGED, id: `${FILE}:2`, verdict: 'caught' }
    const all = [
      JUDGED,
      caught,
      { ...caught, line: 9, after: 'b', verdict: 'unreached' as const },
      { ...caught, verdict: 'stuck' as const },
    ]
    expect(noticedShare(all)).toBe(0.5)
    expect(noticedShare([])).toBe(0)
    expect(report(all, [])).toContain(`${FILE}:3\n  - a < b\n  + a <= b`)
    const { file, before, after } = JUDGED
    const listed = report(all, [{ file, before, after, reason: 'They are never equal.' }])
    expect(listed).not.toContain(`${FILE}:3`)
    expect(listed).toContain('| agent | 4 | 1 | 1 | 0 | 1 | 1 | 50 % |')
  })
})

test('a mutant that is on is in the code that the tests run, and one that is off changes nothing', async () => {
  using directory = mkdtempDisposableSync(join(tmpdir(), 'mutate-'))
  const file = 'src/policy/rules/domain-pattern.ts'
  const found = findMutants(file, readFileSync(join(ROOT, file), 'utf8'))
  const mutants = join(directory.path, 'mutants.json')
  writeFileSync(mutants, JSON.stringify(found))
  const emptied = found.find(({ change }) => change.text === '{}')!
  const reach = { test: 'test/policy/rules.test.ts', digest: '', passed: true, ms: 1, seen: {} }
  const trial = { root: ROOT, tests: [reach], mutants, executable: undefined, onPassed: () => {} }
  expect(await judge({ ...trial, id: emptied.id })).toMatchObject({ verdict: 'caught' })
  expect(await judge({ ...trial, id: 'none' })).toEqual({ verdict: 'survived' })
})

test('each mutant that is called equivalent has a reason, and its line is in the code', () => {
  const sources = readSources(ROOT)
  expect(sources.size).toBeGreaterThan(0)
  for (const { file, before, after, reason } of readEquivalents()) {
    expect(reason.length, `${file}: ${after}`).toBeGreaterThan(20)
    expect(sources.get(file)?.replaceAll(/\s+/g, ' '), `${file}: ${before}`).toContain(before)
  }
})
