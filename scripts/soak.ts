/**
 * What takes hours, in two parts. A failure does not end it.
 *
 * `npm run soak -- --hours 8` is the second part only: everything at random on one server, whose memory is measured.
 * `--log FILE` is where it reports, `--seed N` selects what is done, `--snapshots DIR` is for two heap snapshots.
 * `npm run soak -- path…` is the first part only: the randomised and repeated tests with their long settings, one file
 * after the other, of the files that contain one of the paths.
 * `npm run soak` is both, with two hours for the second part.
 */
import { spawnSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { parseArgs } from 'node:util'
import { soak } from '../test/soak/soak.ts'

const ROOT = join(import.meta.dirname, '..')
/** What asks for the long setting of a test. */
const IS_LONG = /\beffort\(|\bIS_SOAK\b/

const { values, positionals: wanted } = parseArgs({
  allowPositionals: true,
  options: {
    hours: { type: 'string' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    log: { type: 'string', default: join(tmpdir(), 'agent-server-soak.log') },
    snapshots: { type: 'string' },
  },
})
const hours = Number(values.hours ?? 2)
if (!(hours > 0)) throw new Error('--hours needs a number above 0, for example --hours 8')

const failed: string[] = []
if (values.hours === undefined) for (const file of filesToSoak().filter(isWanted)) runTests(file)
if (wanted.length === 0) {
  const { log, seed, snapshots } = values
  if (!(await soak({ hours, seed: Number(seed), log, snapshots }))) failed.push(`the soak, see ${log}`)
}
console.log(failed.length === 0 ? 'All passed.' : `${failed.length} failed:\n${failed.join('\n')}`)
process.exitCode = failed.length === 0 ? 0 : 1

function isWanted(file: string): boolean {
  return wanted.length === 0 || wanted.some((path) => file.includes(path))
}

function runTests(file: string): void {
  const began = performance.now()
  const { status } = spawnSync(process.execPath, [join(ROOT, 'scripts/test.ts'), file], {
    cwd: ROOT,
    env: { ...process.env, SOAK: 'true' },
    stdio: 'inherit',
  })
  if (status !== 0) failed.push(file)
  console.log(`${status === 0 ? 'passed' : 'FAILED'} ${file} in ${Math.round((performance.now() - began) / 1000)} s\n`)
}

/** Returns the files that read the setting themselves, and those whose helpers do. */
function filesToSoak(): string[] {
  const all = globSync('test/**/*.ts', { cwd: ROOT }).toSorted()
  const texts = new Map(all.map((file) => [file, readFileSync(join(ROOT, file), 'utf8')]))
  const isLong = (file: string) => IS_LONG.test(texts.get(file) ?? '') && !file.endsWith('patience.ts')
  const helpers = all.filter((file) => !file.endsWith('.test.ts') && isLong(file)).map((file) => `/${basename(file)}'`)
  const usesHelper = (file: string) => helpers.some((helper) => texts.get(file)?.includes(helper))
  return all.filter((file) => file.endsWith('.test.ts') && (isLong(file) || usesHelper(file)))
}
