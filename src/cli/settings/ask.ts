/** Asks a person at the terminal for a value. A key is not shown while it is typed. */
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'

/** Returns undefined for an empty answer, and when the input ends. */
export async function ask(question: string, { isSecret = false } = {}): Promise<string | undefined> {
  process.stderr.write(question)
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input: process.stdin, output: isSecret ? silent : process.stderr, terminal: true })
  lines.once('SIGINT', () => lines.close())
  try {
    const [answer] = await Promise.race([once(lines, 'line'), once(lines, 'close')])
    return typeof answer === 'string' && answer.trim() !== '' ? answer.trim() : undefined
  } finally {
    lines.close()
    if (isSecret) process.stderr.write('\n')
  }
}
