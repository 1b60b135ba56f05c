/**
 * Real shells in a temporary directory that goes away with the test: on the host, or in a sandbox, by the project of
 * `vitest.config.ts` that the test runs in.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, inject, onTestFinished } from 'vitest'
import { hostLauncher } from '../../src/sandbox/launch.ts'
import { findProcess } from '../../src/shell/processes/process-table.ts'
import type { CommandOptions, ShellResult, Shell, Shells } from '../../src/shell/shell.ts'
import { markedProcesses } from '../support/marked.ts'
import { requireSandbox } from '../support/require-sandbox.ts'
import { HostEnvironment } from '../../src/lib/start-process.ts'
import { BashShells, type ShellsOptions } from '../../src/shell/shells.ts'
import { PATIENCE_S } from '../support/patience.ts'
import { until } from '../support/until.ts'

declare module 'vitest' {
  interface ProvidedContext {
    isolation: 'bubblewrap' | 'none'
  }
}

export const isSandboxed = inject('isolation') === 'bubblewrap'

export type Fixture = {
  readonly shells: Shells
  readonly shell: Shell
  readonly conversationId: string
  readonly workdir: string
  readonly outputDir: string
  /** Runs in `shell`. */
  readonly run: (command: string, options?: Partial<CommandOptions>) => Promise<ShellResult>
  /** The same conversation's shells after the server was started again. */
  readonly reopen: () => Shells
  /** Of a pid as the shells of that session count. */
  readonly isRunning: (pid: number, sessionId?: string) => boolean
}

/** One shell for the tests of a block whose commands leave nothing behind that another could notice. */
export function shareShell(): Fixture['run'] {
  const ends: (() => Promise<void>)[] = []
  let opened: Promise<Fixture> | undefined
  afterAll(async () => {
    for (const end of ends) await end()
  })
  return async (command, options) => {
    opened ??= openShells({}, (end) => ends.push(end))
    return await (await opened).run(command, options)
  }
}

/** They go away at the end of the test, unless `atEnd` says when. */
export async function openShells(
  overrides: Partial<ShellsOptions> = {},
  atEnd: (end: () => Promise<void>) => unknown = onTestFinished,
): Promise<Fixture> {
  const root = await mkdtemp(join(tmpdir(), 'shell-'))
  const conversationId = randomUUID()
  const [dataDir, workdirBase] = [join(root, 'data'), join(root, 'work')]
  const workdir = join(workdirBase, 'workdir')
  const outputDir = join(dataDir, 'outputs')
  const env = HostEnvironment.from({ PATH: process.env['PATH'], HOME: root, LANG: 'C.UTF-8' })
  const launcher = isSandboxed ? await requireSandbox({ dataDir, workdirBase }) : hostLauncher
  const [stateDir, privateDir] = [join(dataDir, 'state'), join(dataDir, 'private')]
  const base = { conversationId, workdir, outputDir, stateDir, privateDir, env, launcher }
  const opened: Shells[] = []
  const reopen = () => {
    const shells = new BashShells({ ...base, ...overrides })
    opened.push(shells)
    return shells
  }
  atEnd(async () => {
    for (const shells of opened) await shells.close()
    await rm(root, { recursive: true, force: true })
  })
  const shells = reopen()
  const shell = shells.get('agent')
  const run = (command: string, options?: Partial<CommandOptions>) => runIn(shell, command, options)
  const isRunning = (pid: number, sessionId = 'agent') => {
    const hostPid = isSandboxed ? hostPidOf(pid, `AGENT_SERVER_SHELL=${conversationId}/${sessionId}\0`) : pid
    const entry = hostPid === undefined ? undefined : findProcess(hostPid)
    return entry !== undefined && !entry.isZombie
  }
  return { shells, shell, conversationId, workdir, outputDir, run, reopen, isRunning }
}

export function runIn(shell: Shell, command: string, options: Partial<CommandOptions> = {}): Promise<ShellResult> {
  return shell.run(command, { timeout: PATIENCE_S, signal: new AbortController().signal, ...options })
}

function hostPidOf(pid: number, mark: string): number | undefined {
  const found = readdirSync('/proc').find((candidate) => {
    try {
      const own = /^NSpid:.*\t(\d+)$/m.exec(readFileSync(`/proc/${candidate}/status`, 'utf8'))?.[1]
      return own === String(pid) && readFileSync(`/proc/${candidate}/environ`, 'utf8').includes(mark)
    } catch {
      return false // it is no process, or none any more
    }
  })
  return found === undefined ? undefined : Number(found)
}

export function processesOf(conversationId: string): number {
  return markedProcesses(conversationId).length
}

/** Resolves when `check` returns true. */
export async function eventually(check: () => boolean | Promise<boolean>): Promise<void> {
  await until(check.toString(), async () => await check())
}
