/** The known failures of clients, each with its reason. The list may only become shorter. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import type { CaseResult } from './run-program.ts'

/** The name of a client -> why cases fail -> their names. */
const Baseline = z.record(z.string(), z.record(z.string().min(1), z.array(z.string()).min(1)))
export type Baseline = z.infer<typeof Baseline>

export const readBaseline = (): Baseline =>
  Baseline.parse(JSON.parse(readFileSync(join(import.meta.dirname, 'baseline.json'), 'utf8')))

/** What the check says of the cases of one client. It is good if all have passed, or are known to fail. */
export type Judgement = { readonly passed: number; readonly known: number; readonly faults: readonly string[] }

/** A known failure that passes, or does not exist, is a fault, too: its entry must go. */
export function judge(
  results: readonly CaseResult[],
  reasons: Readonly<Record<string, readonly string[]>> = {},
): Judgement {
  const known = new Set(Object.values(reasons).flat())
  const failed = results.filter(({ fault }) => fault !== undefined)
  const failedNames = new Set(failed.map((each) => each.case))
  return {
    passed: results.length - failed.length,
    known: failed.filter((each) => known.has(each.case)).length,
    faults: [
      ...failed.filter((each) => !known.has(each.case)).map((each) => `FAILS ${each.case}\n${each.fault}`),
      ...[...known]
        .filter((name) => !failedNames.has(name))
        .map((name) => `NOT KNOWN TO FAIL ${name}: it passes or does not exist. Remove it from the baseline.`),
    ],
  }
}
