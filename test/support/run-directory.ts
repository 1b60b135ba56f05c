/** Makes the directory for the temporary files of a test run, and removes it at the end. Vitest runs this once. */
import { chmod, mkdtemp, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { endProcesses, endWithThisProcess, processesOf } from './left-processes.ts'
import { removeAll } from './remove-all.ts'
import { until } from './until.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** The parent of the directories of the test files. */
    temporary: string
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  // Short, because the path of a Unix socket has at most 103 bytes.
  const directory = await mkdtemp(join(tmpdir(), 'as-'))
  // Tests run programs as other users.
  await chmod(directory, 0o711)
  endWithThisProcess(directory)
  project.provide('temporary', directory)
  return async () => {
    await endPostgres(join(directory, 'postgres/data/postmaster.pid'))
    // The servers that tests used one after the other.
    endProcesses(processesOf(directory))
    await removeAll(directory)
  }
}

/** Killed, it would leave a segment of shared memory in the system. It removes its file when it has ended. */
async function endPostgres(path: string): Promise<void> {
  const pid = async () => Number((await readFile(path, 'utf8').catch(() => '')).split('\n')[0])
  const postmaster = await pid()
  if (postmaster === 0) return
  process.kill(postmaster, 'SIGQUIT')
  await until('the end of PostgreSQL', async () => (await pid()) === 0).catch(() => {}) // then it is killed
}
