/** The ports of benchmarks. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

test('two benchmarks at the same time have different ports', async () => {
  const program = `console.log((await import('${new URL('../../bench/server-process.ts', import.meta.url).href}')).URL)`
  const run = () => promisify(execFile)(process.execPath, ['--input-type=module', '-e', program])
  const [one, other] = await Promise.all([run(), run()])
  expect(one.stdout).toMatch(/^http:\/\/127\.0\.0\.1:\d+\n$/)
  expect(one.stdout).not.toBe(other.stdout)
})
