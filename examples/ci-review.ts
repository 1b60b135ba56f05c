/**
 * A reviewer for CI: reads a diff from the standard input and exits with 0 if it may be merged, with 1 if not, and with 2
 * if there is no verdict. Usage: git diff main | node examples/ci-review.ts. It may read the checkout, and change nothing.
 */
import { text } from 'node:stream/consumers'
import { run } from 'agent-server'
import { z } from 'zod'

const Verdict = z.object({
  verdict: z.enum(['approve', 'reject']),
  findings: z.array(z.object({ file: z.string(), line: z.int().optional(), problem: z.string() })),
})

/** Longer diffs are reviewed in parts. */
const MAX_DIFF_CHARS = 200_000

const diff = await text(process.stdin)
if (diff.trim() === '') exit(0, 'There is no change.')
if (diff.length > MAX_DIFF_CHARS) exit(2, `The diff has more than ${MAX_DIFF_CHARS} characters. Split the change.`)

const { structuredOutput, error, stopReason, costUsd } = await run({
  prompt: `Review this change. Reject it only for a defect. Read files for context if you need them.\n\n${diff}`,
  options: {
    cwd: process.cwd(),
    permissionMode: 'plan',
    outputSchema: Verdict,
    maxSteps: 30,
    timeoutS: 600,
    maxBudgetUsd: 1,
    // A model of your own has no price; without this line the budget refuses it.
    allowUnpriced: true,
  },
}).catch((reason: unknown) => exit(2, `No verdict. ${reason instanceof Error ? reason.message : String(reason)}`))
const review = Verdict.safeParse(structuredOutput)
if (!review.success) exit(2, `No verdict (${stopReason}). ${error?.message ?? ''}`)

for (const { file, line, problem } of review.data.findings) console.log(`${[file, line].join(':')}: ${problem}`)
const cost = costUsd === undefined ? '' : ` for $${costUsd.toFixed(4)}`
exit(review.data.verdict === 'approve' ? 0 : 1, `${review.data.verdict}${cost}`)

function exit(code: number, reason: string): never {
  console.log(reason)
  process.exit(code)
}
