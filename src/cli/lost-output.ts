/** What happens when the output cannot be written: a full disk, or a reader that is gone, as with `| head`. */
import { codeOf } from '../lib/error-code.ts'

/** For servers. Call it before the first line is written. By default Node would end the process, and with it the runs of a server. */
export function surviveLostOutput(): void {
  let wasReported = false
  process.stderr.on('error', () => {})
  process.stdout.on('error', (error) => {
    if (wasReported) return
    wasReported = true
    const reason = codeOf(error) ?? 'error'
    process.stderr.write(`agent-server: the output cannot be written (${reason}); continuing without it.\n`)
  })
}

/** For commands that only print: nobody reads the rest. */
export function endWithoutReader(): void {
  process.stderr.on('error', () => {})
  process.stdout.on('error', (error) => {
    const code = codeOf(error) ?? 'error'
    if (code !== 'EPIPE') process.stderr.write(`agent-server: the output cannot be written (${code}).\n`)
    process.exit(code === 'EPIPE' ? 0 : 1)
  })
}

/** Resolves when everything was written, or could not be: an error is reported after that of the write. */
export function flushOutput(): Promise<void> {
  return new Promise((resolve) => {
    process.stdout.write('', () => setImmediate(resolve))
  })
}
