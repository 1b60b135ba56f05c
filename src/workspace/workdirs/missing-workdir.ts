/** Refuses a run without its workdir: another instance may have made it on its own disk. */
import { stat } from 'node:fs/promises'
import { codeOf } from '../../lib/error-code.ts'

export class MissingWorkdir extends Error {
  override readonly name = 'MissingWorkdir'
}

export async function requireWorkdir(path: string): Promise<void> {
  try {
    await stat(path)
  } catch (cause) {
    // Other errors are those of its commands.
    if (codeOf(cause) !== 'ENOENT') return
    throw new MissingWorkdir(
      `The working directory ${path} is not on this instance. Set OPENHANDS_SHARED_DIR to a directory that all instances share, move the directory there or restore it, and start a run again.`,
      { cause },
    )
  }
}
