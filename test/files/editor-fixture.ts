/** A directory for one test, removed after it. */
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

export async function makeDirectory(): Promise<string> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), 'editor-')))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  return directory
}
