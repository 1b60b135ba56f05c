/** Which regular expressions the linter refuses in `src/`, because a long text makes them fail or slow. */
import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { regexpFaults } from '../../scripts/lint/regexp-faults.ts'

const kindsOf = ({ source, flags }: RegExp) => [...new Set(regexpFaults(source, flags).map(({ kind }) => kind))].sort()

/** Some more turns than the stack of V8 holds. */
const MANY = 18_000_000

type Text = readonly [unit: string, turns: number]
const letters: Text = ['ab', MANY / 2]
const emoji: Text = ['\u{1f600}', MANY / 2]

const MATCH = `
const [source, flags, unit, turns] = JSON.parse(process.argv[1])
try {
  console.log(new RegExp(source, flags).test(unit.repeat(turns)) ? 'matches' : 'does not match')
} catch (error) {
  console.log(error.name)
}`

/**
 * In a process of its own: V8 no longer optimizes the expressions of a process that has compiled very many, as that of the
 * tests does, and then keeps each turn of any `+`.
 */
async function matchAlone({ source, flags }: RegExp, unit: string, turns: number): Promise<string> {
  const question = JSON.stringify([source, flags, unit, turns])
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', MATCH, question])
  return stdout.trim()
}

describe('V8 fails on a long text, and the linter says so', () => {
  test.each([
    [/^(?:a|b)*$/, letters],
    [/^(?:a|b)*?$/, letters],
    [/^(?:\\.|[^\\])*$/, letters],
    [/^(\w)*$/, letters],
    [/^(?:,?\w)*$/, letters],
    [/^(?:(?!x)\w)*$/, letters],
    [/^[^x]*$/u, emoji],
    [/^[^x]*$/v, emoji],
    [/^.*$/u, emoji],
    [/^\p{So}*$/u, emoji],
    [/^[\ud800-\udfff]*$/u, ['\ud800', MANY] as Text],
  ])('%s', async (pattern, [unit, turns]) => {
    expect(await matchAlone(pattern, unit, turns)).toBe('RangeError')
    expect(kindsOf(pattern)).toContain('stack')
  })
})

describe('V8 matches a text of any length, and the linter is content', () => {
  test.each([
    [/^[^x]*$/, letters],
    [/^[^]*?$/, letters],
    [/^(?:ab)*$/, letters],
    [/^(?:[ab](?:b))+$/, letters],
    [/^\w*$/u, letters],
    [/^[a-z]+$/iu, letters],
    [/^(?:a|b){0,9999}/, letters],
  ])('%s', async (pattern, [unit, turns]) => {
    expect(await matchAlone(pattern, unit, turns)).toBe('matches')
    expect(kindsOf(pattern)).toEqual([])
  })
})

const GROWING = [
  /=+$/,
  /\s+$/,
  /^\s*\w*\s*$/,
  /(?<a>\w+)\w+!/,
  /^(?:a+)+$/,
  /(?:x|x)*y/,
  /\$\{(\w(?::[^}]*)?)\}/,
  /<a([^>]*)>/,
  /^(?:[23]|23)*m/,
  /^(?:a|aa){1,99}b/,
]

test.each(GROWING)('time that grows with the square of the text, or faster, is refused: %s', (pattern) => {
  expect(kindsOf(pattern)).toContain('time')
})

test.each([
  /^\s+/,
  /(?<! ) +$/,
  /\s+/g,
  /^\w+$/,
  /=+$/y,
  /"[^"]*"/,
  /<a>([^<]*)</,
  /^ [^x]*x/m,
  /^(?:a|bb|[cd]){1,99}b/,
])('linear time is accepted: %s', (pattern) => {
  expect(kindsOf(pattern)).toEqual([])
})

test('the linter knows the rules in src and in tests, and comments that have a reason', async () => {
  const root = join(import.meta.dirname, '../..')
  const directory = await mkdtemp(join(tmpdir(), 'lint-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  for (const part of ['.oxlintrc.json', 'scripts/lint'])
    await cp(join(root, part), join(directory, part), { recursive: true })
  await symlink(join(root, 'node_modules'), join(directory, 'node_modules'))
  await mkdir(join(directory, 'src'))
  await writeFile(
    join(directory, 'src/a.ts'),
    `export const [a, b, c] = [/(?:a|b)*/, /=+$/, new RegExp(process.title)]
// oxlint-disable-next-line regexp/time -- ten characters
export const d = /=+$/
export const far = (ms: number) => [setTimeout(() => {}, ms - 1), AbortSignal.timeout(-ms), setTimeout(() => {}, timerMs(-ms))]
`,
  )
  await mkdir(join(directory, 'test'))
  await writeFile(
    join(directory, 'test/a.test.ts'),
    `import { setTimeout as sleep } from 'node:timers/promises'
const began = performance.now()
await sleep(100)
await new Promise((resolve) => setTimeout(resolve, 100))
await takeTime(100)
await takeTime(5)
await vi.waitFor(() => {})
await expect.poll(() => 1, { timeout: 1000 }).toBe(1)
await expect.poll(() => 1, { interval: 1000 }).toBe(1)
// oxlint-disable-next-line tests/sleep -- as long as it takes
await sleep(1)
expect(performance.now() - began).toBeLessThan(1000)
expect(result.durationMs).toBeLessThan(1000)
expect(Math.abs(Date.now() - began)).toBeLessThan(1000)
const deadline = performance.now() + 1000
process.cpuUsage()
`,
  )
  const oxlint = promisify(execFile)(
    process.execPath,
    [join(root, 'node_modules/oxlint/bin/oxlint'), '--format=unix', 'src', 'test'],
    {
      cwd: directory,
    },
  )
  const { stdout } = await oxlint.catch((error: { stdout: string }) => error)
  expect(stdout.match(/(?:regexp|timers|tests)\(\w+\)/g)?.sort()).toEqual([
    'regexp(built)',
    'regexp(stack)',
    'regexp(time)',
    ...Array.from({ length: 4 }, () => 'tests(elapsed)'),
    ...Array.from({ length: 5 }, () => 'tests(sleep)'),
    'timers(bounded)',
    'timers(bounded)',
  ])
})
