/** The directory in which the server keeps what belongs to one conversation: made once, by whoever makes the conversation. */
import { mkdir } from 'node:fs/promises'
import { Problem } from '../../contract/problem.ts'
import { codeOf } from '../../lib/error-code.ts'

/** An existing one may hold a conversation that was put there by hand: it is neither used nor, when something fails, removed. */
export async function makeDirectory(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 })
  } catch (cause) {
    if (codeOf(cause) !== 'EEXIST') throw cause
    throw new Problem(
      'conversation_exists',
      'There is data of a conversation with this id; restart the server to see it, or use another id.',
      { cause },
    )
  }
}
