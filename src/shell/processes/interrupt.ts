/** Ends the command that runs in a shell, asking first and forcing last, while the shell itself lives on. */
import { settlesWithin } from '../../lib/bounded-wait.ts'
import type { BashProcess } from '../bash-process.ts'
import { signalGroup, signalProcess, type ProcessEntry } from './process-table.ts'

/** When to look again within a grace, as parts of it: soon, for what began just as it was signalled. */
const LOOKS = [0.05, 0.25, 0.7]
const SETTLE_MS = 200
const SETTLE_TRIES = 5

type Signal = 'SIGINT' | 'SIGTERM' | 'SIGKILL'

/**
 * Resolves when `ended` has: after SIGINT, SIGTERM, SIGKILL with `graceMs` for each, and when all of that left the
 * shell busy (a loop of its own that ignores SIGINT), after the end of the shell, in a sandbox of all that is in it. What
 * even the kernel does not end is given up: it never takes longer than three times `graceMs` and three seconds.
 */
export async function interruptCommand(bash: BashProcess, ended: Promise<unknown>, graceMs: number): Promise<void> {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGKILL'] as const) {
    // Each hears each signal once: many programs take a second SIGINT for "at once, without cleaning up".
    const told = new Set<number>()
    for (const part of LOOKS) {
      signalForeground(bash, signal, told)
      // The interrupt may have eaten the line that asks for the command's report. This asks again.
      void bash.send('\n')
      if (await settlesWithin(graceMs * part, ended)) return settle(bash)
    }
  }
  await bash.kill()
}

function signalForeground(bash: BashProcess, signal: Signal, told: Set<number>): void {
  // The shell first: else it could see its child's end alone, and go on with the rest of the command. SIGTERM, which it
  // ignores, is for what it became by `exec`.
  bash.signal('SIGINT')
  if (signal === 'SIGTERM') bash.signal('SIGTERM')
  const shell = bash.entry
  if (shell) wake(shell)
  for (const process of bash.foreground()) {
    // After `set +m` the command is in the shell's own group.
    const isAlone = process.groupId === shell?.groupId
    const key = isAlone ? process.pid : process.groupId
    if (told.has(key)) continue
    // A fork that has not become its program yet handles a signal as the shell does, and so may lose it.
    if (process.name !== shell?.name) told.add(key)
    if (isAlone) signalProcess(process, signal)
    else signalGroup(process, signal)
    wake(process)
  }
}

/** What was stopped (SIGSTOP) hears of no other signal before it goes on. */
function wake(process: ProcessEntry): void {
  if (process.state === 'T') signalProcess(process, 'SIGCONT')
}

/** Until the shell answers again: a late SIGINT would else hit the next command, or eat its line. */
async function settle(bash: BashProcess): Promise<void> {
  for (let tries = 0; tries < SETTLE_TRIES; tries++) {
    if (await settlesWithin(SETTLE_MS, bash.send('\n'))) return
  }
  await bash.kill()
}
