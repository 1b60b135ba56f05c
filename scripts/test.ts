/**
 * Builds the executable that the stories drive, unless it is newer than the sources, and runs vitest with the given
 * arguments. Without a file or a project among them, it leaves out the long tests.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { globSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { processorSeconds } from './processor-seconds.ts'

const ROOT = join(import.meta.dirname, '..')
const EXECUTABLE = join(ROOT, 'dist/agent-server')
/** What the executable is made of. */
const PARTS = [
  'src/**/*.ts',
  'openapi/*.json',
  'catalog/*.json',
  'scripts/{build,executable/*}.ts',
  'package-lock.json',
]

const executable = process.env['AGENT_SERVER_BIN'] ?? builtExecutable()
const built = secondsSoFar()
const env = executable === undefined ? process.env : { ...process.env, AGENT_SERVER_BIN: executable }
const given = process.argv.slice(2)
const isChosen = given.some((argument) => !argument.startsWith('-') || argument.startsWith('--project'))
// By its path: a directory with a colon in its name cannot be in PATH.
const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs')
// Node reads the configuration: Vite takes `#` and `?` in a path for parts of a URL.
const run = ['run', '--configLoader=native', ...(isChosen ? [] : ['--project=!long'])]
const tests = spawn(process.execPath, [vitest, ...run, ...given], {
  cwd: ROOT,
  env,
  stdio: 'inherit',
})
// A signal to this process ends the tests, too.
for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT'] as const) process.on(signal, () => tests.kill(signal))
tests.on('error', (error) => process.stderr.write(`No test was run: ${error.message}. Run: npm ci\n`))
const [code] = (await once(tests, 'close').catch(() => [null])) as [number | null]
process.exitCode = code ?? 1
const used = secondsSoFar()
if (built !== undefined && used !== undefined)
  process.stdout.write(
    `Processor time: ${built.toFixed(0)} s for the executable, ${(used - built).toFixed(0)} s for the tests.\n`,
  )

/** Seconds of processor time of all processes that this one started and that have ended. */
function secondsSoFar(): number | undefined {
  return process.platform === 'linux' ? processorSeconds().children : undefined
}

/** The stories run what is shipped: it starts in a third of the time that the sources take. */
function builtExecutable(): string | undefined {
  // Elsewhere an executable would have to be signed before it runs: the stories run the sources.
  if (process.platform !== 'linux') return undefined
  if (isStale()) {
    const build = spawnSync(process.execPath, [join(ROOT, 'scripts/build.ts')], { stdio: 'inherit' })
    if (build.status !== 0) {
      process.stderr.write('No test was run: the executable that the tests use was not built.\n')
      process.exit(1)
    }
  }
  return EXECUTABLE
}

/** Also when it cannot be executed, as after a copy that was cut off. */
function isStale(): boolean {
  if (spawnSync(EXECUTABLE, ['--version'], { stdio: 'ignore', timeout: 60_000 }).status !== 0) return true
  const built = statSync(EXECUTABLE).mtimeMs
  return globSync(PARTS, { cwd: ROOT }).some((part) => statSync(join(ROOT, part)).mtimeMs > built)
}
