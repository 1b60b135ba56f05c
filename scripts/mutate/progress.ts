/** The reporter of `npm run mutate`: a line of JSON for each test file that starts or ends, and for each test that fails. */
import { relative } from 'node:path'
import type { Reporter, TestCase, TestModule } from 'vitest/node'

export type Progress =
  | { readonly type: 'start'; readonly file: string }
  | { readonly type: 'failed'; readonly file: string; readonly test: string }
  | { readonly type: 'end'; readonly file: string; readonly passed: boolean; readonly ms: number }

/** The mark before each line, since tests print, too. */
export const MARK = '\u0001'

export default class ProgressReporter implements Reporter {
  onTestModuleQueued(module: TestModule): void {
    say({ type: 'start', file: fileOf(module) })
  }

  onTestCaseResult(test: TestCase): void {
    if (test.result().state === 'failed') say({ type: 'failed', file: fileOf(test.module), test: test.fullName })
  }

  onTestModuleEnd(module: TestModule): void {
    const { duration, collectDuration, setupDuration } = module.diagnostic()
    const ms = Math.round(duration + collectDuration + setupDuration)
    say({ type: 'end', file: fileOf(module), passed: module.state() !== 'failed', ms })
  }
}

const fileOf = ({ moduleId }: TestModule): string => relative(process.cwd(), moduleId)

const say = (progress: Progress): boolean => process.stdout.write(`${MARK}${JSON.stringify(progress)}\n`)
