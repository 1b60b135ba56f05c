/** The subscribers of the benchmark `churn`; told the plan, tells what came of it. */
import type { ChurnPlan } from '../test/support/churn.ts'
import { churn } from '../test/support/churn.ts'

const outcome = await churn(JSON.parse(process.argv[2]!) as ChurnPlan)
process.send!(outcome, () => process.exit())
