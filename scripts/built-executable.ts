/** The executable that tests drive: it is built unless it is newer than the sources. */
import { spawnSync } from 'node:child_process'
import { globSync, statSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')
const EXECUTABLE = join(ROOT, 'dist/agent-server')
/** What the executable is made of. */
const PARTS = [
  'src/**/*.{ts,tsx,css,svg}',
  'openapi/*.json',
  'catalog/*.json',
  'scripts/{build,executable/*,ui/*}.ts',
  'package-lock.json',
]

/** Its path. Throws if it cannot be built. */
export function builtExecutable(): string {
  if (!isStale()) return EXECUTABLE
  const { status } = spawnSync(process.execPath, [join(ROOT, 'scripts/build.ts')], { stdio: 'inherit' })
  if (status === 0) return EXECUTABLE
  throw new Error('The executable that the tests use was not built.')
}

/** Returns true also if it cannot be executed, as after a copy that was cut off. */
function isStale(): boolean {
  if (spawnSync(EXECUTABLE, ['--version'], { stdio: 'ignore', timeout: 60_000 }).status !== 0) return true
  const built = statSync(EXECUTABLE).mtimeMs
  return globSync(PARTS, { cwd: ROOT }).some((part) => statSync(join(ROOT, part)).mtimeMs > built)
}
