/** Ends the command that runs in a shell, asking first and forcing last, while the shell itself lives on. */
import { setTimeout as delay } from 'node:timers/promises'
import type { BashProcess } from './bash-process.ts'
import { signalGroup, signalProcess } from './process-table.ts'

const SETTLE_MS = 200
const SETTLE_TRIES = 5

/**
 * Resolves when `ended` has: after SIGINT, SIGTERM, SIGKILL with `graceMs` for each, and when all of that left the
 * shell busy (a loop of its own that ignores SIGINT), after the end of the shell.
 */
export async function interruptCommand(bash: BashProcess, ended: Promise<unknown>, graceMs: number): Promise<void> {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGKILL'] as const) {
    signalForeground(bash, signal)
    if (await settlesWithin(ended, graceMs)) return settle(bash)
  }
  killShell(bash)
  await ended
}

/** The shell and all below it, at once. */
export function killShell(bash: BashProcess): void {
  const below = bash.foreground()
  bash.signal('SIGKILL')
  for (const process of below) signalProcess(process, 'SIGKILL')
}

function signalForeground(bash: BashProcess, signal: 'SIGINT' | 'SIGTERM' | 'SIGKILL'): void {
  const shellGroup = bash.entry?.groupId
  const groups = new Set<number>()
  for (const process of bash.foreground()) {
    // After `set +m` the command is in the shell's own group.
    if (process.groupId === shellGroup) signalProcess(process, signal)
    else if (!groups.has(process.groupId)) signalGroup(process, signal)
    groups.add(process.groupId)
  }
  // The shell drops the rest of the command at SIGINT, and ignores SIGTERM, unless `exec` made it another program.
  bash.signal('SIGINT')
  if (signal === 'SIGTERM') bash.signal('SIGTERM')
}

/** Until the shell answers again: a late SIGINT would else hit the next command, or eat its line. */
async function settle(bash: BashProcess): Promise<void> {
  for (let tries = 0; tries < SETTLE_TRIES; tries++) {
    if (await settlesWithin(bash.send('\n'), SETTLE_MS)) return
  }
  killShell(bash)
}

async function settlesWithin(promise: Promise<unknown>, ms: number): Promise<boolean> {
  const timer = new AbortController()
  const inTime = promise.then(() => true)
  const tooLate = delay(ms, false, { signal: timer.signal }).catch(() => false)
  return Promise.race([inTime, tooLate]).finally(() => timer.abort())
}
