/** Removes what the shells of a killed server have left in the directories of a conversation. Saved states stay. */
import { readdir, rm, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { isDraftName } from '../lib/durable-file.ts'
import { codeOf } from '../lib/error-code.ts'
import { BACKGROUND_DIRECTORY } from './output/background-output.ts'
import { commandIdOf } from './processes/shell-processes.ts'
import { STATE_FILE } from './shell-files.ts'

/** Call it when their processes have ended, and before the first new shell. */
export async function removeLeftShells(stateDir: string, outputDir: string): Promise<void> {
  await removeOldForks(stateDir)
  for (const session of await namesIn(stateDir)) {
    const directory = join(stateDir, session)
    for (const name of await namesIn(directory))
      if (name !== STATE_FILE) await rm(join(directory, name), { force: true })
    await rmdir(directory).catch(() => {}) // it has a saved state
  }
  await rm(join(outputDir, BACKGROUND_DIRECTORY), { recursive: true, force: true })
  for (const name of (await namesIn(outputDir)).filter(isDraftName)) await rm(join(outputDir, name), { force: true })
}

/** Removes the shells of single commands. */
export async function removeOldForks(stateDir: string): Promise<void> {
  const forks = (await namesIn(stateDir)).filter((name) => commandIdOf(name) !== undefined)
  await Promise.all(forks.map((name) => rm(join(stateDir, name), { recursive: true, force: true })))
}

async function namesIn(directory: string): Promise<string[]> {
  return await readdir(directory).catch((error: unknown) => {
    if (['ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '')) return []
    throw error
  })
}
