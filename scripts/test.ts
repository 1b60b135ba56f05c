/** Builds the executable that the stories drive, unless it is newer than the sources, and runs vitest with the given arguments. */
import { spawnSync } from 'node:child_process'
import { globSync, statSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')
const EXECUTABLE = join(ROOT, 'dist/agent-server')
/** What the executable is made of. */
const PARTS = ['src/**/*.ts', 'openapi/*.json', 'scripts/build.ts', 'package-lock.json']

const executable = process.env['AGENT_SERVER_BIN'] ?? builtExecutable()
const env = executable === undefined ? process.env : { ...process.env, AGENT_SERVER_BIN: executable }
const { status } = spawnSync('vitest', ['run', ...process.argv.slice(2)], { cwd: ROOT, env, stdio: 'inherit' })
process.exitCode = status ?? 1

/** The stories run what is shipped: it starts in a third of the time that the sources take. */
function builtExecutable(): string | undefined {
  // Elsewhere an executable would have to be signed before it runs: the stories run the sources.
  if (process.platform !== 'linux') return undefined
  if (isStale()) {
    const build = spawnSync(process.execPath, [join(ROOT, 'scripts/build.ts')], { stdio: 'inherit' })
    if (build.status !== 0) throw new Error('The executable that the tests run was not built.')
  }
  return EXECUTABLE
}

function isStale(): boolean {
  const built = statSync(EXECUTABLE, { throwIfNoEntry: false })?.mtimeMs ?? 0
  return globSync(PARTS, { cwd: ROOT }).some((part) => statSync(join(ROOT, part)).mtimeMs > built)
}
