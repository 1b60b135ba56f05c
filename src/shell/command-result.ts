/** Builds the result of a command: its fields, and the sentences of its note. */
import { constants } from 'node:os'
import type { FinishedCommand } from './bash-command.ts'
import type { BashExit } from './bash-process.ts'
import type { ShellResult } from './shell.ts'

export type Circumstances = {
  readonly exit: BashExit | undefined
  readonly cwd: string
  readonly durationMs: number
  /** The session was closed or restarted meanwhile. */
  readonly wasEnded: boolean
  readonly notes: readonly string[]
  /** Returns the host pid for a pid inside the sandbox. */
  readonly hostPidOf: (ownPid: string) => number | undefined
}

export function toCommandResult(
  finishedCommand: FinishedCommand,
  circumstances: Circumstances,
): Omit<ShellResult, 'processesLeft' | 'outputsHeld'> {
  const { report, stopped, stdout, stderr } = finishedCommand
  const { exit, cwd, durationMs, wasEnded, notes } = circumstances
  const backgroundHostPid = report?.isNewAndRunning ? circumstances.hostPidOf(report.lastBackgroundPid) : undefined
  const fullOutputPath = stdout.fullOutputPath ?? stderr.fullOutputPath
  const note = [...notes, stdout.note, stderr.note].filter((sentence) => sentence !== undefined).join(' ')
  return {
    exitCode: report ? report.exitCode : exitCodeOf(exit),
    stdout: stdout.text,
    stderr: stderr.text,
    cwd,
    durationMs,
    timedOut: stopped === 'timeout',
    interrupted: stopped === 'abort' || wasEnded,
    flooded: stopped === 'flood',
    truncated: fullOutputPath !== undefined,
    ...(report?.isNewAndRunning && { backgroundPid: Number(report.lastBackgroundPid) }),
    ...(backgroundHostPid !== undefined && { backgroundHostPid }),
    outputBytes: { stdout: stdout.bytes, stderr: stderr.bytes },
    ...(fullOutputPath !== undefined && { fullOutputPath }),
    ...(note && { note }),
  }
}

/** The result of a command that was aborted, or whose session ended, before it could start. */
export function notStarted(cwd: string): ShellResult {
  const nothing = { exitCode: null, stdout: '', stderr: '', durationMs: 0, timedOut: false, flooded: false }
  const outputBytes = { stdout: 0, stderr: 0 }
  return {
    ...nothing,
    outputBytes,
    processesLeft: [],
    cwd,
    interrupted: true,
    truncated: false,
    note: 'The command was not started.',
  }
}

export const FLOODED = 'The command was ended because it wrote more output than a file may hold.'

export const RESTORED =
  'The shell was restarted, with its working directory, exports, functions, aliases and options; other variables are gone.'

export const STATE_UNUSABLE =
  'The shell was restarted without its exports, functions and options, because it did not start with them.'

export function tellEnd(exit: BashExit, { cwd, endedBackground }: { cwd: string; endedBackground: boolean }): string {
  if (exit.isStuck)
    return `The shell was killed, but the kernel has not ended it yet. The next command starts a new one in ${cwd}.`
  const how = exit.signal ? `was killed (${exit.signal})` : `ended (exit code ${exit.code})`
  const what = endedBackground ? `${how}, and with it its background processes` : how
  return `The shell ${what}. The next command starts a new one in ${cwd}, with the exports and functions as they were before this command.`
}

export function tellEndBetween({ code, signal }: BashExit, { isStateCurrent }: { isStateCurrent: boolean }): string {
  const lostState = isStateCurrent
    ? ''
    : ' as they were before that command, because the shell ended before it had saved the new ones'
  return `The shell had ended since the last command (${signal ?? `exit code ${code}`}); a new one was started with its exports and functions${lostState}.`
}

export function tellLostCwd(lostState: string, cwd: string): string {
  return lostState === cwd
    ? `The working directory ${lostState} was deleted, and so was the workdir; create it again.`
    : `The working directory ${lostState} was deleted; the shell is now in ${cwd}.`
}

/** Returns the code as a shell reports it: 128 plus the signal number. */
function exitCodeOf(exit: BashExit | undefined): number | null {
  if (!exit?.signal) return exit?.code ?? null
  return 128 + constants.signals[exit.signal]
}
