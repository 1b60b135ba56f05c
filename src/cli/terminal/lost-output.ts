/** What happens when the output cannot be written: a full disk, or a reader that is gone, as with `| head`. */
import { codeOf } from '../../lib/error-code.ts'
import { sayError } from './terminal.ts'

/** The exit code of a process that SIGPIPE has ended, as for `git log | head`. Node ignores that signal. */
const READER_LEFT = 141

/** The exit code of a command whose output could not be written. */
export const codeOfLostOutput = (code: string | undefined): number => (code === 'EPIPE' ? READER_LEFT : 1)

/** Nothing can be done about lost messages for a person. By default Node would end the process. */
export function ignoreLostMessages(): void {
  process.stderr.on('error', () => {})
}

/** Keeps a command running that must not end before its work is done. Call it before the first line is written. */
export function surviveLostOutput({ isServer }: { readonly isServer: boolean }): void {
  let wasReported = false
  process.stdout.on('error', (error) => {
    if (wasReported) return
    wasReported = true
    const reason = codeOf(error) ?? 'error'
    if (!isServer) process.exitCode = codeOfLostOutput(reason)
    sayError(`agent-server: the output cannot be written (${reason}); continuing without it.\n`)
  })
}

/** Ends a command that only prints: nobody reads the rest. */
export function endWithoutReader(): void {
  process.stdout.on('error', (error) => {
    const code = codeOf(error) ?? 'error'
    if (code !== 'EPIPE') sayError(`agent-server: the output cannot be written (${code}).\n`)
    process.exit(codeOfLostOutput(code))
  })
}

/** Longer than a reader needs that reads; in milliseconds. */
const LOG_PATIENCE_MS = 1000

/** Resolves to false if the reader of the log does not read: a server does not wait for it to end. */
export async function flushLog(): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const timer = setTimeout(resolve, LOG_PATIENCE_MS, false)
  void flushOutput().then(() => resolve(true))
  return await promise.finally(() => clearTimeout(timer))
}

/** Resolves when everything was written, or could not be: an error is reported after that of the write. */
export function flushOutput(): Promise<void> {
  return new Promise((resolve) => {
    process.stdout.write('', () => setImmediate(resolve))
  })
}
