/** Removes the files of tests, also below directories that nobody but root may change as they are. */
import { execFileSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { rm } from 'node:fs/promises'

const OPTIONS = { recursive: true, force: true, maxRetries: 3 }

export async function removeAll(directory: string): Promise<void> {
  await rm(directory, OPTIONS).catch(async () => {
    allowChanges(directory)
    await rm(directory, OPTIONS)
  })
}

export function removeAllSync(directory: string): void {
  try {
    rmSync(directory, OPTIONS)
  } catch {
    allowChanges(directory)
    rmSync(directory, OPTIONS)
  }
}

/** Prints no errors: files of programs that still end go away meanwhile. */
function allowChanges(directory: string): void {
  try {
    execFileSync('chmod', ['-R', 'u+rwX', directory], { stdio: 'ignore' })
  } catch {
    // The next error says what cannot be removed.
  }
}
