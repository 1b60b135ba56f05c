/** Ctrl+Z, as in any other program: the shell stops the process, and `fg` continues it. */

/** How long the signal of Ctrl+Z may take. */
const NOT_STOPPED_MS = 200

/** Calls `proceed` once, when the process continues. */
export function suspendProcess(proceed: () => void): void {
  const onContinue = () => {
    process.off('SIGCONT', onContinue)
    clearTimeout(timer)
    proceed()
  }
  process.on('SIGCONT', onContinue)
  // Nothing stops where no shell controls jobs, as in `ssh -t host agent-server chat`.
  const timer = setTimeout(onContinue, NOT_STOPPED_MS)
  process.kill(0, 'SIGTSTP')
}
