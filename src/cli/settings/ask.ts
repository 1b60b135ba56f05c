/** Asks a person at the terminal for a value. A key is not shown while it is typed. */
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'

/** As after Ctrl+C elsewhere. */
const INTERRUPTED = 130

/** Returns undefined for an empty answer, and when the input ends. */
export async function ask(question: string, { isSecret = false } = {}): Promise<string | undefined> {
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input: process.stdin, output: isSecret ? silent : process.stderr, terminal: true })
  // Only now: before, the terminal itself shows what is typed.
  if (isSecret) process.stderr.write(question)
  lines.setPrompt(question)
  lines.prompt()
  const cancel = () => lines.close()
  lines.once('SIGINT', () => {
    lines.close()
    process.stderr.write('\n')
    process.exit(INTERRUPTED)
  })
  // Node gives the terminal back after the other signals.
  process.once('SIGHUP', cancel)
  try {
    const [answer] = await Promise.race([once(lines, 'line'), once(lines, 'close')])
    return typeof answer === 'string' && answer.trim() !== '' ? answer.trim() : undefined
  } finally {
    lines.close()
    process.off('SIGHUP', cancel)
    if (isSecret) process.stderr.write('\n')
  }
}
