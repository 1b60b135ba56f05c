/** Real shells in a temporary directory that goes away with the test. */
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { hostLauncher } from '../../src/workspace/host-launcher.ts'
import { findByEnvironment, findProcess } from '../../src/workspace/process-table.ts'
import type { CommandOptions, CommandResult, Shell, Shells } from '../../src/workspace/shell.ts'
import { shellEnvironment } from '../../src/workspace/shell-environment.ts'
import { createShells, type ShellsOptions } from '../../src/workspace/shells.ts'

export type Fixture = {
  readonly shells: Shells
  readonly shell: Shell
  readonly conversationId: string
  readonly workdir: string
  readonly outputDir: string
  /** Runs in `shell`. */
  readonly run: (command: string, options?: Partial<CommandOptions>) => Promise<CommandResult>
  /** The same conversation's shells after the server was started again. */
  readonly reopen: () => Shells
}

export async function openShells(overrides: Partial<ShellsOptions> = {}): Promise<Fixture> {
  const root = await mkdtemp(join(tmpdir(), 'shell-'))
  const conversationId = randomUUID()
  const workdir = join(root, 'workdir')
  const outputDir = join(root, 'output')
  const env = shellEnvironment({ PATH: process.env['PATH'], HOME: root, LANG: 'C.UTF-8' })
  const base = { conversationId, workdir, outputDir, stateDir: join(root, 'state'), env, launcher: hostLauncher }
  const opened: Shells[] = []
  const reopen = () => {
    const shells = createShells({ ...base, ...overrides })
    opened.push(shells)
    return shells
  }
  onTestFinished(async () => {
    for (const shells of opened) await shells.close()
    await rm(root, { recursive: true, force: true })
  })
  const shells = reopen()
  const shell = shells.get('agent')
  const run = (command: string, options?: Partial<CommandOptions>) => runIn(shell, command, options)
  return { shells, shell, conversationId, workdir, outputDir, run, reopen }
}

export function runIn(shell: Shell, command: string, options: Partial<CommandOptions> = {}): Promise<CommandResult> {
  return shell.run(command, { timeout: 20, signal: new AbortController().signal, ...options })
}

export function isRunning(pid: number): boolean {
  const entry = findProcess(pid)
  return entry !== undefined && !entry.isZombie
}

export async function processesOf(conversationId: string): Promise<number> {
  const found = await findByEnvironment(`AGENT_SERVER_SHELL=${conversationId}/`, { prefix: true })
  return found.length
}

/** Until `check` holds; the test's own time limit ends it otherwise. */
export async function eventually(check: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await check())) await new Promise((resolve) => setTimeout(resolve, 5))
}
