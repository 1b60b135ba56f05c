/**
 * Lets the process end while a thread waits for a disk or a name server that does not answer. Node ends the threads of its
 * pool first, and so an exit would take as long as their system calls: minutes, or until the next start of the machine.
 */

/** Long enough for every call that does not hang; in milliseconds. */
const GRACE_MS = 100

let isAtOnce = false

/** Call it once, before other listeners for `exit` are added. */
export function endDespiteThreads(): void {
  const onExit = (code: number) => {
    if (!isAtOnce && !process.getActiveResourcesInfo().some(isThreadWork)) return
    const all = process.rawListeners('exit')
    for (const other of all.slice(all.indexOf(onExit) + 1)) other.call(process, code)
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

/** Another program in its place keeps the exit code, which a signal would change; the kernel ends the threads. */
function replaceProcess(code: number): void {
  try {
    process.execve?.('/bin/sh', ['sh', '-c', `exit ${code}`], {})
  } finally {
    process.kill(process.pid, 'SIGKILL')
  }
}
