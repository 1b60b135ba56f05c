/**
 * Appends what each test file cost to the file that `TEST_COSTS` names: one line of JSON with the file and its seconds of
 * processor time, in the worker and in the processes that it waited for. Vitest runs this only if the variable is set.
 */
import { appendFileSync } from 'node:fs'
import { afterAll, expect } from 'vitest'
import { processorSeconds } from '../../scripts/processor-seconds.ts'

const before = processorSeconds()

afterAll(() => {
  const after = processorSeconds()
  const cost = {
    file: expect.getState().testPath,
    own: Number((after.own - before.own).toFixed(2)),
    children: Number((after.children - before.children).toFixed(2)),
  }
  appendFileSync(process.env['TEST_COSTS']!, `${JSON.stringify(cost)}\n`)
})
