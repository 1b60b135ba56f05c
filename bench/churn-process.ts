/** The subscribers of the benchmark `churn`; receives the plan and returns the outcome. */
import type { ChurnPlan } from '../test/support/churn.ts'
import { churn } from '../test/support/churn.ts'

const outcome = await churn(JSON.parse(process.argv[2]!) as ChurnPlan)
process.send!(outcome, () => process.exit())
