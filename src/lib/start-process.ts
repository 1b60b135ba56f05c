/**
 * Starts processes outside of a sandbox, also while no descriptor is free, and says why one could not be started. The
 * only file that does, so that each of them has an environment of the server alone.
 */
import { execFile, spawn, type ChildProcess, type ExecFileOptions, type SpawnOptions } from 'node:child_process'
import { promisify } from 'node:util'
import { codeOf } from './error-code.ts'
import type { HostEnvironment } from './host-environment.ts'

export type { ChildProcess } from 'node:child_process'

/** Without `shell`, which would interpret the arguments. */
type Own<Options> = Omit<Options, 'env' | 'shell'> & { readonly env: HostEnvironment }

/**
 * Throws if the process cannot have its pipes. Node returns such a process without any stream, and emits an error on it
 * later, which would end the server if nothing listened. All other failures are thrown or emitted as by `spawn`.
 */
export function startProcess(file: string, args: readonly string[], options: Own<SpawnOptions>): ChildProcess {
  const child = attempt(file, args, options)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types do not know of such a process
  const stdio = child.stdio as ChildProcess['stdio'] | undefined
  if (stdio) return child.prependOnceListener('error', (error) => explain(error, file))
  child.on('error', () => {}) // thrown here instead
  throw explain(Object.assign(new Error(), { code: 'EMFILE', syscall: 'spawn' }), file)
}

const execute = promisify(execFile)

/** Runs a program to its end, and resolves with its output. Rejects as the promise of `execFile` does. */
export async function runProgram(
  file: string,
  args: readonly string[],
  { env, ...options }: Own<ExecFileOptions>,
): Promise<{ stdout: string; stderr: string }> {
  try {
    return await execute(file, args, { ...options, encoding: 'utf8', env: env.variables })
  } catch (error) {
    throw error instanceof Error ? explain(error, file) : error
  }
}

/** Returns true for the error of a process that could not be started because the machine lacks something. */
export function isStartRefused(error: unknown): boolean {
  const syscall = error instanceof Error && 'syscall' in error ? String(error.syscall) : ''
  return syscall.startsWith('spawn') && (codeOf(error) ?? '') in LACKS
}

function attempt(file: string, args: readonly string[], { env, ...options }: Own<SpawnOptions>): ChildProcess {
  try {
    return spawn(file, args, { ...options, env: env.variables })
  } catch (error) {
    throw error instanceof Error ? explain(error, file) : error
  }
}

/** What the machine lacks, by the code of the system. */
const LACKS: Readonly<Record<string, string>> = {
  EMFILE: 'no file descriptors are free (EMFILE). Try again when fewer files and connections are open.',
  ENFILE: 'the machine has no free file descriptor (ENFILE). Try again when fewer files and connections are open.',
  EAGAIN: 'the limit of processes is reached (EAGAIN). End some of them, or try again later.',
  ENOMEM: 'the memory is used up (ENOMEM). End some processes, or try again later.',
}

function explain(error: Error, file: string): Error {
  const lack = LACKS[codeOf(error) ?? '']
  if (lack !== undefined) error.message = `${file} could not be started: ${lack}`
  return error
}
