/**
 * `npm test`: provides the programs that the tests run, builds the executable that the stories drive, and runs vitest with
 * the given arguments. Exits with 1 and one line, before any test, when a program is missing and cannot be installed.
 */
import { spawnSync } from 'node:child_process'
import { globSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { providePrograms } from './test-programs.ts'

const ROOT = join(import.meta.dirname, '..')
const EXECUTABLE = join(ROOT, 'dist/agent-server')
/** What the executable is made of. */
const PARTS = ['src/**/*.ts', 'openapi/*.json', 'scripts/build.ts', 'package-lock.json']

const missing = providePrograms()
if (missing === undefined) {
  process.exitCode = runTests(process.argv.slice(2))
} else {
  process.stderr.write(`${missing}\n`)
  process.exitCode = 1
}

function runTests(args: readonly string[]): number {
  const env: NodeJS.ProcessEnv = {
    ...process.env,
    AGENT_SERVER_BIN: process.env['AGENT_SERVER_BIN'] ?? builtExecutable(),
  }
  return spawnSync('vitest', ['run', ...args], { cwd: ROOT, env, stdio: 'inherit' }).status ?? 1
}

/** The stories run what is shipped: it starts in a third of the time that the sources take. */
function builtExecutable(): string | undefined {
  // Elsewhere an executable would have to be signed before it runs: the stories run the sources.
  if (process.platform !== 'linux') return undefined
  if (isStale()) {
    const { status } = spawnSync(process.execPath, [join(ROOT, 'scripts/build.ts')], { stdio: 'inherit' })
    if (status !== 0) throw new Error('The executable that the tests run was not built.')
  }
  return EXECUTABLE
}

function isStale(): boolean {
  const built = statSync(EXECUTABLE, { throwIfNoEntry: false })?.mtimeMs ?? 0
  return globSync(PARTS, { cwd: ROOT }).some((part) => statSync(join(ROOT, part)).mtimeMs > built)
}
