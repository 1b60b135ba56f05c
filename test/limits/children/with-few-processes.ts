/** Runs where its user may have 300 processes, and prints as JSON what a conversation gets of them, and the warnings. */
import { execFile } from 'node:child_process'
import { mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { warningsOfOwnLimits } from '../../../src/limits/own-limits.ts'
import { createResourceLimiter } from '../../../src/limits/resource-limits.ts'

await promisify(execFile)('prlimit', ['--pid', String(process.pid), '--nproc=300'])
const dataDir = await mkdtemp(join(process.argv[2] ?? '', 'data-'))
const processesOf = async (processes: number) => {
  const limiter = await createResourceLimiter({ limits: { processes }, dataDir, onError: console.error })
  return limiter.inForce().processes
}
console.log(JSON.stringify([await processesOf(2048), await processesOf(100), warningsOfOwnLimits()]))
