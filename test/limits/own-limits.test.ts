import { join } from 'node:path'
import { expect, test } from 'vitest'
import { areProcessesShort, warningsOfOwnLimits } from '../../src/limits/own-limits.ts'
import { runAsNobody } from '../support/unprivileged.ts'

/** The limit does not hold for root. */
test.runIf(process.getuid?.() === 0)(
  'a conversation gets at most half of the processes that the server may have, and the log warns if these are few',
  async () => {
    expect(await runAsNobody(join(import.meta.dirname, 'children/with-few-processes.ts'))).toEqual([
      150,
      100,
      [expect.stringMatching(/^the server may have 300 processes and threads; .*--pids-limit/)],
    ])
  },
)

test('processes are short when a control group has four fifths of those it may have', () => {
  const outer = { max: 5000, current: 90 }
  expect(areProcessesShort([{ max: 100, current: 79 }, outer])).toBe(false)
  expect(areProcessesShort([{ max: 100, current: 80 }, outer])).toBe(true)
  expect(areProcessesShort([])).toBe(false)
})

test('the log warns of little address space and of few files, and of nothing without a limit', () => {
  const limitsWith = (
    space: string,
    files: string,
  ) => `Limit                     Soft Limit           Hard Limit           Units
Max address space         ${space}           unlimited            bytes
Max open files            ${files}                 524288               files
`
  // The machine of the test may limit processes, too.
  const warnings = (space: string, files: string) =>
    warningsOfOwnLimits(limitsWith(space, files)).filter((text) => !text.includes('processes and threads'))
  expect(warnings('unlimited', '4096')).toEqual([])
  expect(warnings('4000000000', '1024')).toEqual([
    expect.stringMatching(/^the server may have 4000000000 bytes of address space; .*LimitAS=/),
    expect.stringMatching(/^the server may have 1024 open files; .*LimitNOFILE=/),
  ])
})
