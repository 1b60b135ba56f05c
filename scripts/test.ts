/**
 * Builds the executable that the stories drive, unless it is newer than the sources, and runs vitest with the given
 * arguments. Without a file or a project among them, it leaves out the long tests, and those of the cluster.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { builtExecutable } from './built-executable.ts'
import { processorSeconds } from './processor-seconds.ts'

const ROOT = join(import.meta.dirname, '..')

const executable = process.env['AGENT_SERVER_BIN'] ?? executableHere()
const built = secondsSoFar()
// As many threads as the server has: files that do not answer would stop four, and with them all tests of a process.
const threads = { UV_THREADPOOL_SIZE: '16' }
// To start a process, the system copies the page tables of its parent. With an arena for each thread, the free memory of
// malloc makes a worker of the tests half as large again.
const arenas = { MALLOC_ARENA_MAX: '1' }
const env = { ...threads, ...arenas, ...process.env, ...(executable !== undefined && { AGENT_SERVER_BIN: executable }) }
const given = process.argv.slice(2)
const isChosen = given.some((argument) => !argument.startsWith('-') || argument.startsWith('--project'))
// The path is used, and not the name: a directory with a colon in its name cannot be in PATH.
const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs')
// Node reads the configuration: Vite takes `#` and `?` in a path for parts of a URL.
const run = ['run', '--configLoader=native', ...(isChosen ? [] : ['--project=!long', '--project=!cluster*'])]
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
function executableHere(): string | undefined {
  // Elsewhere an executable would have to be signed before it runs: the stories run the sources.
  if (process.platform !== 'linux') return undefined
  try {
    return builtExecutable()
  } catch (error) {
    process.stderr.write(`No test was run. ${error instanceof Error ? error.message : String(error)}\n`)
    process.exit(1)
  }
}
