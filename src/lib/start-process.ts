/** Starts processes, also while no descriptor is free. */
import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process'

/**
 * Throws if the process cannot have its pipes. Node returns such a process without any stream, and emits an error on it
 * later, which would end the server if nothing listened. All other failures are thrown or emitted as by `spawn`.
 */
export function startProcess(file: string, args: readonly string[], options: SpawnOptions): ChildProcess {
  const child = spawn(file, args, options)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types do not know of such a process
  const stdio = child.stdio as ChildProcess['stdio'] | undefined
  if (stdio) return child
  child.on('error', () => {}) // thrown here instead
  throw Object.assign(new Error(`${file} could not be started: no file descriptors are free (EMFILE).`), {
    code: 'EMFILE',
    syscall: 'spawn',
  })
}
