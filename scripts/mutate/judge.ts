/** Finds out whether a test notices a mutant. */
import { linkSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Reach } from './reach.ts'
import { runVitest } from './run-vitest.ts'
import { ordersFile } from './switch.ts'

export type Verdict = {
  /** `stuck` means that a test took far longer than without the mutant, which is noticed, too. */
  readonly verdict: 'caught' | 'stuck' | 'survived' | 'unreached'
  /** The test that noticed it. */
  readonly by?: string
}

/** What a test file may take before a mutant counts as the reason, besides a multiple of what it took without one. */
const LIMIT_MS = 30_000
const LIMIT_FACTOR = 5

export type Trial = {
  readonly root: string
  readonly id: string
  readonly tests: readonly Reach[]
  readonly mutants: string
  readonly executable: string | undefined
  readonly onPassed: (test: string, ms: number) => void
}

export async function judge(trial: Trial): Promise<Verdict> {
  const { root, id, tests, mutants, executable } = trial
  if (tests.length === 0) return { verdict: 'unreached' }
  const limits = new Map(tests.map(({ test, ms }) => [test, LIMIT_MS + LIMIT_FACTOR * ms]))
  const stopped = new AbortController()
  let result: Verdict | undefined
  let last = ''
  let timer: NodeJS.Timeout | undefined
  const decide = (verdict: Verdict): void => {
    result = verdict
    stopped.abort()
  }
  const run = { root, tests: tests.map(({ test }) => test), mutants, executable, orders: { on: id }, workers: 1 }
  const code = await runVitest(
    run,
    (step) => {
      clearTimeout(timer)
      last = step.file
      if (step.type === 'failed') decide({ verdict: 'caught', by: `${step.file} > ${step.test}` })
      else if (step.type === 'end' && !step.passed) decide({ verdict: 'caught', by: step.file })
      else if (step.type === 'end') trial.onPassed(step.file, step.ms)
      else timer = setTimeout(() => decide({ verdict: 'stuck', by: step.file }), limits.get(step.file) ?? LIMIT_MS)
    },
    stopped.signal,
  )
  clearTimeout(timer)
  if (last === '') throw new Error('Vitest ran no test file. Run one of them with `npm test` to see why.')
  return result ?? (code === 0 ? { verdict: 'survived' } : { verdict: 'caught', by: last })
}

/** A hard link to the executable, with its orders next to it. A copy would take more than 100 MB. */
export function ordered(executable: string, job: string, orders: object): string {
  const own = join(dirname(executable), job, 'agent-server')
  mkdirSync(dirname(own), { recursive: true })
  rmSync(own, { force: true })
  linkSync(executable, own)
  writeFileSync(ordersFile(own), JSON.stringify(orders))
  return own
}
