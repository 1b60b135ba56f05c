/** The order of a run: which mutants, what each test reaches, and the verdict on each mutant. */
import { spawnSync } from 'node:child_process'
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { mapBounded } from '../../src/lib/map-bounded.ts'
import type { Sources } from './code.ts'
import { allMutants, digest, FOLDERS, readSources, sample, show } from './code.ts'
import { buildWithMutants } from './executable.ts'
import type { Mutant } from './find-mutants.ts'
import { judge, ordered } from './judge.ts'
import type { Reach } from './reach.ts'
import { ReachNotes } from './reach.ts'
import type { Judged } from './report.ts'
import { runVitest, VITEST } from './run-vitest.ts'
import { Verdicts } from './verdicts.ts'

export type Settings = {
  readonly root: string
  readonly state: string
  readonly parts: readonly string[]
  /** If it is not empty, only the tests with one of these in their path run. */
  readonly paths: readonly string[]
  readonly seed: number
  /** Mutants of each part. */
  readonly count: number
  readonly jobs: number
  /** Whether tests that are not noted, or were changed since, are left out. */
  readonly asNoted: boolean
  /** Milliseconds of tests for one mutant. */
  readonly budgetMs: number
}

/** What decides on the numbers of the mutants. */
const FINDERS = globSync('{operators,regexp-operators,find-mutants}.ts', { cwd: import.meta.dirname })
  .toSorted()
  .map((file) => join(import.meta.dirname, file))

export async function mutate(settings: Settings): Promise<Judged[]> {
  const { root, parts, seed, count, jobs, budgetMs } = settings
  const sources = readSources(root)
  const state = join(
    settings.state,
    digest(...[...sources].flat(), ...FINDERS.map((file) => readFileSync(file, 'utf8'))),
  )
  const reach = new ReachNotes(root, state)
  const tests = testFiles(root).filter((test) => settings.paths.some((path) => test.includes(path)))
  if (!settings.asNoted) await noteReach(settings, sources, reach, tests)
  const chosen = parts.flatMap((part) =>
    sample(sources, FOLDERS[part]!, seed, count).map((mutant) => ({ part, mutant })),
  )
  const mutants = join(state, `mutants-${seed}.json`)
  writeFileSync(mutants, JSON.stringify(chosen.map(({ mutant }) => mutant)))
  const executable = await executableWith(settings, mutants, `executable-${seed}`)
  const verdicts = new Verdicts(join(state, `verdicts-${seed}.jsonl`))
  const free = Array.from({ length: jobs }, (_, index) => `job-${index}`)
  const importers = importersOf(sources)
  let done = 0
  return await mapBounded(chosen, jobs, async ({ part, mutant }) => {
    const reaching = reach.testsOf(mutant, tests, importers.get(mutant.file) ?? [])
    const tried = withinBudget(reaching, budgetMs)
    const against = digest(...tried.flatMap((one) => [one.test, one.digest]))
    const known = verdicts.get(mutant.id, against)
    const job = known ? undefined : free.pop()!
    if (job === undefined) return (done++, known!)
    const began = performance.now()
    const own = executable === undefined ? undefined : ordered(executable, job, { on: mutant.id })
    const verdict = await judge({
      root,
      id: mutant.id,
      tests: tried,
      mutants,
      executable: own,
      onPassed: (test, ms) => reach.passedIn(test, ms),
    })
    free.push(job)
    const shown = show(mutant, sources.get(mutant.file) ?? '')
    const ms = Math.round(performance.now() - began)
    const judged = { id: mutant.id, part, file: mutant.file, ...shown, ...verdict, against, ms }
    verdicts.add(judged)
    console.log(
      `${++done}/${chosen.length} ${verdict.verdict} ${mutant.file}:${shown.line} ${verdict.by ?? ''} (${ms} ms)`,
    )
    return judged
  })
}

/** The tests of `npm test` outside of the sandbox; those in it are some of them a second time. */
function testFiles(root: string): string[] {
  const listed = spawnSync(process.execPath, [VITEST, 'list', '--filesOnly', '--json', '--project=all'], {
    cwd: root,
    encoding: 'utf8',
  })
  if (listed.status !== 0) throw new Error(`Vitest did not list the tests:\n${listed.stderr}`)
  return (JSON.parse(listed.stdout) as { readonly file: string }[]).map(({ file }) => relative(root, file))
}

async function noteReach(
  settings: Settings,
  sources: Sources,
  reach: ReachNotes,
  tests: readonly string[],
): Promise<void> {
  const missing = reach.missing(tests).toSorted((one, other) => Number(isStory(one)) - Number(isStory(other)))
  if (missing.length === 0) return
  console.log(`${missing.length} test files run once, to note what they reach.`)
  const { root, jobs } = settings
  const mutants = join(dirname(reach.directory), 'mutants.json')
  if (!existsSync(mutants)) writeFileSync(mutants, JSON.stringify(allMutants(sources)))
  const orders = { notes: reach.directory }
  rmSync(reach.directory, { recursive: true, force: true })
  mkdirSync(reach.directory, { recursive: true })
  const built = await executableWith(settings, mutants, 'executable-notes')
  const executable = built === undefined ? undefined : ordered(built, 'notes', orders)
  let done = 0
  await runVitest(
    { root, tests: missing, mutants, executable, orders, workers: jobs },
    (step) => {
      if (step.type === 'failed') console.log(`Failed without a mutant: ${step.file} > ${step.test}`)
      if (step.type !== 'end') return
      reach.add(step.file, step)
      console.log(`${++done}/${missing.length} noted ${step.file} (${step.ms} ms)`)
    },
    new AbortController().signal,
  )
  if (!reach.isAnyReached())
    throw new Error('No test reached a mutant. Look at how vitest loads the code with mutants.')
}

/** These take longest, and are noted last. */
const isStory = (test: string): boolean => test.startsWith('test/stories/')

/** Builds it once for the same mutants. Elsewhere than on Linux, the tests start the sources, which have none. */
async function executableWith({ root, state }: Settings, mutants: string, name: string): Promise<string | undefined> {
  if (process.platform !== 'linux') return undefined
  const executable = join(state, name, 'agent-server')
  const stamp = join(state, name, 'stamp')
  const texts = globSync('src/**/*.ts', { cwd: root }).toSorted()
  const content = digest(readFileSync(mutants, 'utf8'), ...texts.map((file) => readFileSync(join(root, file), 'utf8')))
  if (existsSync(executable) && existsSync(stamp) && readFileSync(stamp, 'utf8') === content) return executable
  console.log('The executable with the mutants is being built.')
  rmSync(stamp, { force: true })
  await buildWithMutants(root, JSON.parse(readFileSync(mutants, 'utf8')) as Mutant[], executable)
  writeFileSync(stamp, content)
  return executable
}

/** Returns the first tests that fit into the budget, at least one. */
function withinBudget(tests: readonly Reach[], budgetMs: number): Reach[] {
  let sum = 0
  return tests.filter(({ ms }, index) => (sum += ms) <= budgetMs || index === 0)
}

/** Maps each file to the files of the core that import it. */
function importersOf(sources: Sources): Map<string, string[]> {
  const pairs = [...sources].flatMap(([importer, text]) =>
    [...text.matchAll(/ from '(\.[^']+)'/g)].map(([, path]) => ({
      importer,
      file: join(dirname(importer), path ?? ''),
    })),
  )
  const byFile = Map.groupBy(pairs, ({ file }) => file)
  return new Map([...byFile].map(([file, all]) => [file, all.map(({ importer }) => importer)]))
}
