/**
 * Lets the process end while a thread waits for a disk or a name server that does not answer. Node ends the threads of its
 * pool first, and so an exit would take as long as their system calls: minutes, or until the next start of the machine.
 */
import { writeSync } from 'node:fs'
import { inspect } from 'node:util'
import { plainText } from '../../telemetry/plain-text.ts'

/** Long enough for every call that does not hang; in milliseconds. */
const GRACE_MS = 100

let isAtOnce = false

/** Call it once, before other listeners for `exit` are added. */
export function endDespiteThreads(): void {
  let fatal: { readonly error: unknown } | undefined
  process.on('uncaughtExceptionMonitor', (error) => (fatal = { error }))
  const onExit = (code: number) => {
    if (!isAtOnce && !process.getActiveResourcesInfo().some(isThreadWork)) return
    const all = process.rawListeners('exit')
    for (const other of all.slice(all.indexOf(onExit) + 1)) other.call(process, code)
    // Node would write it after this.
    if (fatal && process.listenerCount('uncaughtException') === 0) writeError(fatal.error)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, GRACE_MS)
    replaceProcess(code)
  }
  process.on('exit', onExit)
}

/** Exits without a look at the threads: Node does not list each read of a file. */
export function exitNow(code: number): never {
  isAtOnce = true
  process.exit(code)
}

/** Operations on files, and lookups of names. */
const isThreadWork = (resource: string): boolean =>
  /^(FSReq|FileHandleCloseReq|GetAddrInfoReq|GetNameInfoReq)/.test(resource)

function writeError(error: unknown): void {
  try {
    writeSync(2, `${plainText(inspect(error))}\n`)
  } catch {
    // nobody reads it
  }
}

/** Another program in its place keeps the exit code, which a signal would change; the kernel ends the threads. */
function replaceProcess(code: number): void {
  try {
    process.execve?.('/bin/sh', ['sh', '-c', `exit ${code}`], {})
  } finally {
    process.kill(process.pid, 'SIGKILL')
  }
}
