/** Runs test files on code with mutants, and ends them with all that they started when one fails or takes too long. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { endProcesses, processesOf } from '../../test/support/left-processes.ts'
import { MUTANTS_VARIABLE } from './mutant-plugin.ts'
import type { Progress } from './progress.ts'
import { MARK } from './progress.ts'
import type { Orders } from './switch.ts'
import { ORDERS_VARIABLE } from './switch.ts'

/** The path, and not the name: a directory with a colon in its name cannot be in PATH. */
export const VITEST = join(import.meta.dirname, '../../node_modules/vitest/vitest.mjs')

export type VitestRun = {
  readonly root: string
  readonly tests: readonly string[]
  /** The file with the mutants that are in the code. */
  readonly mutants: string
  readonly executable: string | undefined
  readonly orders: Orders
  readonly workers: number
}

/** Milliseconds until the processes that vitest started have ended, when it was killed. */
const ENDING_MS = 5000

/** Calls `follow` for each step until `stopped`. Resolves to the exit code when all processes have ended. */
export async function runVitest(
  run: VitestRun,
  follow: (step: Progress) => void,
  stopped: AbortSignal,
): Promise<number | null> {
  // Short, because the path of a Unix socket has at most 103 bytes.
  const directory = mkdtempSync(join(tmpdir(), 'm'))
  // Tests run programs as other users.
  for (const path of [tmpdir(), directory]) if (path !== '/tmp') chmodSync(path, 0o711)
  // As in scripts/test.ts.
  const config = [
    '--configLoader=native',
    '--config',
    'scripts/mutate/vitest.config.ts',
    '--reporter=./scripts/mutate/progress.ts',
  ]
  const limits = ['--project=all', `--maxWorkers=${run.workers}`]
  const vitest = spawn(process.execPath, [VITEST, 'run', ...config, ...limits, ...run.tests], {
    cwd: run.root,
    env: {
      ...process.env,
      TMPDIR: directory,
      [MUTANTS_VARIABLE]: run.mutants,
      [ORDERS_VARIABLE]: JSON.stringify(run.orders),
      ...(run.executable !== undefined && { AGENT_SERVER_BIN: run.executable }),
    },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const ended = once(vitest, 'close')
  // SIGKILL also ends an endless loop, which no other signal ends.
  stopped.addEventListener('abort', () => vitest.kill('SIGKILL'))
  createInterface(vitest.stdout).on('line', (line) => {
    const at = line.indexOf(MARK)
    if (at !== -1 && !stopped.aborted) follow(JSON.parse(line.slice(at + MARK.length)) as Progress)
  })
  const [code] = (await ended) as [number | null]
  await endAll(directory)
  return code
}

async function endAll(directory: string): Promise<void> {
  const deadline = performance.now() + ENDING_MS
  for (;;) {
    const left = processesOf(directory)
    if (left.length === 0 || performance.now() > deadline) break
    endProcesses(left)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  rmSync(directory, { recursive: true, force: true, maxRetries: 3 })
}
