/**
 * Ends the command that runs in a shell, first with signals it can handle, finally by force, while the shell survives.
 */
import { settlesWithin } from '../../lib/bounded-wait.ts'
import type { BashProcess } from '../bash-process.ts'
import { signalGroup, signalProcess, type ProcessEntry } from './process-table.ts'

/**
 * The times for another check within a grace period, as fractions of it: early, for processes that started during the
 * signal.
 */
const LOOKS = [0.05, 0.25, 0.7]
/** How often, and how long as a fraction of a grace period, an ended shell is waited for. */
const SETTLE_TRIES = 5
const SETTLE_PART = 1 / 3

type Signal = 'SIGINT' | 'SIGTERM' | 'SIGKILL'

/**
 * Resolves when `ended` has: after SIGINT, SIGTERM, SIGKILL with `graceMs` for each, and if all of that left the shell
 * busy (a loop of the shell itself that ignores SIGINT), after killing the shell, in a sandbox with everything in it.
 * Processes that even the kernel does not end are abandoned: it never takes longer than five times `graceMs` plus
 * two seconds.
 */
export async function interruptCommand(
  bash: BashProcess,
  commandEnd: Promise<unknown>,
  graceMs: number,
): Promise<void> {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGKILL'] as const) {
    // Send each signal only once to each: many programs treat a second SIGINT as "immediately, without cleaning up".
    const signalledPids = new Set<number>()
    for (const part of LOOKS) {
      signalForeground(bash, signal, signalledPids)
      // The interrupt may have consumed the line that asks for the command's report. This asks again.
      void bash.send('\n')
      if (await settlesWithin(graceMs * part, commandEnd)) return settle(bash, graceMs)
    }
  }
  await bash.kill()
}

function signalForeground(bash: BashProcess, signal: Signal, signalledPids: Set<number>): void {
  // Signal the shell first: otherwise it could only see its child's end, and continue with the rest of the command. It
  // ignores SIGTERM, which is for a program that it became by `exec`.
  bash.signal('SIGINT')
  if (signal === 'SIGTERM') bash.signal('SIGTERM')
  const shell = bash.entry
  if (shell) wake(shell)
  for (const process of bash.foreground()) {
    // The command is in the shell's own group after `set +m`.
    const isAlone = process.groupId === shell?.groupId
    const key = isAlone ? process.pid : process.groupId
    if (signalledPids.has(key)) continue
    // A fork that has not called exec yet handles a signal as the shell does, and so may lose it.
    if (process.name !== shell?.name) signalledPids.add(key)
    if (isAlone) signalProcess(process, signal)
    else signalGroup(process, signal)
    wake(process)
  }
}

/** A stopped process (SIGSTOP) handles no other signal until it continues. */
function wake(process: ProcessEntry): void {
  if (process.state === 'T') signalProcess(process, 'SIGCONT')
}

/** Waits until the shell responds again: a late SIGINT would otherwise hit the next command, or consume its line. */
async function settle(bash: BashProcess, graceMs: number): Promise<void> {
  for (let tries = 0; tries < SETTLE_TRIES; tries++) {
    if (await settlesWithin(graceMs * SETTLE_PART, bash.send('\n'))) return
  }
  await bash.kill()
}
