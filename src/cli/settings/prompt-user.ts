/** Asks a person at the terminal for a value. A key is not shown while it is typed. */
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { onEndSignals, SIGNAL_CODES } from '../terminal/end-signals.ts'
import { plainText } from '../../telemetry/plain-text.ts'
import { sayError } from '../terminal/terminal.ts'

/**
 * Returns undefined for an empty answer, and at the end of the input. Ctrl+C, a signal and a terminal that is gone end the
 * process; the terminal is restored.
 */
export async function promptUser(question: string, { isSecret = false } = {}): Promise<string | undefined> {
  const silent = new Writable({ write: (_chunk, _encoding, callback) => callback() })
  const lines = createInterface({ input: process.stdin, output: isSecret ? silent : process.stderr, terminal: true })
  const leave = (code: number): never => {
    try {
      lines.close()
      sayError('\n')
    } catch {
      // The terminal is gone, so that nothing of it can be restored.
    }
    process.exit(code)
  }
  using _signals = onEndSignals(leave)
  const hangUp = () => leave(SIGNAL_CODES.SIGHUP)
  process.stdin.once('error', hangUp)
  lines.once('SIGINT', () => leave(SIGNAL_CODES.SIGINT))
  // The question is written now: until now the terminal itself shows what is typed.
  if (isSecret) sayError(question)
  lines.setPrompt(plainText(question))
  lines.prompt()
  try {
    const [answer] = await Promise.race([once(lines, 'line'), once(lines, 'close')])
    return typeof answer === 'string' && answer.trim() !== '' ? answer.trim() : undefined
  } finally {
    lines.close()
    process.stdin.off('error', hangUp)
    if (isSecret) sayError('\n')
  }
}
