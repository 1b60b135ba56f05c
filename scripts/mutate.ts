/**
 * Breaks the core on purpose, one small change at a time, and runs the tests that reach it: `npm run mutate -- --seed 7`.
 * Prints a table and each change that no test noticed, and fails when fewer than 85 % were noticed.
 *
 * `--count N` mutants of each part (60), `--part NAME` only there (repeatable), `--jobs N` at a time (2), `--budget N` seconds
 * of tests for one mutant (60), `--state DIRECTORY` for all that is kept (`node_modules/.cache/mutate`),
 * `--as-noted` without the tests that were changed since it was noted what they reach, `path…` only the tests with one of
 * these in their path.
 *
 * The first run notes which test file reaches which mutants, by running each once. A run that was ended continues where it was,
 * and one after a change of tests repeats the mutants that had survived. No file of the working tree changes: the mutants
 * are in what vitest reads and in a separate executable, each behind a switch.
 *
 * StrykerJS 10 was not used: what a test starts would run without the mutant, and here that is the executable in a fourth
 * of the tests; it cannot select a project of a vitest configuration; it finds out what each test reaches in one process
 * and on each run; and it writes its results only at the end, so that a run that was ended starts again.
 */
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { FOLDERS } from './mutate/code.ts'
import { mutate } from './mutate/mutate-core.ts'
import { noticedShare, report } from './mutate/report.ts'
import { readEquivalents } from './mutate/verdicts.ts'
import { useOwnTemporary } from './own-temporary.ts'

const ROOT = join(import.meta.dirname, '..')
/** The share of all mutants that tests have to notice. */
const NEEDED_SHARE = 0.85

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seed: { type: 'string', default: '1' },
    count: { type: 'string', default: '60' },
    part: { type: 'string', multiple: true, default: Object.keys(FOLDERS) },
    jobs: { type: 'string', default: String(Math.min(2, availableParallelism())) },
    budget: { type: 'string', default: '60' },
    'as-noted': { type: 'boolean', default: false },
    state: { type: 'string', default: join(ROOT, 'node_modules/.cache/mutate') },
  },
})
const unknown = values.part.filter((part) => !Object.hasOwn(FOLDERS, part))
if (unknown.length > 0)
  throw new Error(`There is no part ${unknown.join(', ')}. Use one of: ${Object.keys(FOLDERS).join(', ')}`)

useOwnTemporary()
const judged = await mutate({
  root: ROOT,
  state: values.state,
  parts: values.part,
  paths: positionals.length === 0 ? [''] : positionals,
  seed: Number(values.seed),
  count: Number(values.count),
  jobs: Number(values.jobs),
  asNoted: values['as-noted'],
  budgetMs: 1000 * Number(values.budget),
})
console.log(report(judged, readEquivalents()))
process.exitCode = noticedShare(judged) >= NEEDED_SHARE ? 0 : 1
