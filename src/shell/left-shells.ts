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
  const [sessions, outputs] = await Promise.all([namesIn(stateDir), namesIn(outputDir)])
  for (const name of sessions) await removeLeftSession(stateDir, name)
  for (const name of outputs)
    if (name === BACKGROUND_DIRECTORY || isDraftName(name)) await removeAll(join(outputDir, name))
}

async function removeLeftSession(stateDir: string, name: string): Promise<void> {
  const directory = join(stateDir, name)
  if (isFork(name)) return await removeAll(directory)
  for (const file of await namesIn(directory)) if (file !== STATE_FILE) await removeAll(join(directory, file))
  await rmdir(directory).catch(() => {}) // it has a saved state
}

/** Removes the shells of single commands. */
export async function removeOldForks(stateDir: string): Promise<void> {
  const forks = (await namesIn(stateDir)).filter(isFork)
  await Promise.all(forks.map((name) => removeAll(join(stateDir, name))))
}

const isFork = (name: string): boolean => commandIdOf(name) !== undefined

const removeAll = (path: string): Promise<void> => rm(path, { recursive: true, force: true })

async function namesIn(directory: string): Promise<string[]> {
  return await readdir(directory).catch((error: unknown) => {
    if (['ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '')) return []
    throw error
  })
}
