/**
 * The processes that were started with a directory for temporary files (`TMPDIR`), by whomever, and the end of both. The
 * processes are found on Linux only.
 */
import { readFileSync, readdirSync } from 'node:fs'
import { constants } from 'node:os'
import { removeAllSync } from './remove-all.ts'

export type LeftProcess = { readonly pid: number; readonly command: string }

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Ends the processes of a directory, and removes it, when this process ends, also by a signal. */
export function endWithThisProcess(directory: string): void {
  process.once('exit', () => {
    endProcesses(processesOf(directory))
    removeAllSync(directory)
  })
  for (const signal of SIGNALS) process.once(signal, () => process.exit(128 + constants.signals[signal]))
}

/**
 * Returns the processes whose temporary directory it is, or is in it, without those that ended while they were read.
 */
export function processesOf(directory: string): LeftProcess[] {
  if (process.platform !== 'linux') return []
  const belongs = (variable: string) =>
    variable === `TMPDIR=${directory}` || variable.startsWith(`TMPDIR=${directory}/`)
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && contentOf(`/proc/${name}/environ`).split('\0').some(belongs))
    .map((name) => ({ pid: Number(name), command: contentOf(`/proc/${name}/cmdline`).replaceAll('\0', ' ') }))
}

export function endProcesses(processes: readonly LeftProcess[]): void {
  for (const { pid } of processes) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It has ended by now.
    }
  }
}

function contentOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
