/** Limits of a run and of a conversation, as clients set them. */
import { z } from 'zod'

/** The limit if no other number is given. */
export const DEFAULT_ITERATIONS = 500
export const MaxIterations = z
  .int()
  .min(1)
  .max(100_000)
  .describe(`Maximum number of model answers per run. Default: ${DEFAULT_ITERATIONS}.`)
export const MaxSeconds = z
  .number()
  .positive()
  .max(2_592_000)
  .describe('Maximum duration of a run in seconds. Default: unlimited.')
export const MaxTokens = z
  .int()
  .positive()
  .describe('Maximum number of input and output tokens of a run, as the model reports them. Default: unlimited.')
export const MaxBudget = z
  .number()
  .positive()
  .describe(
    'Maximum cost of the whole conversation in USD. Each model that may be asked needs a price that the server knows, or an endpoint that reports costs; `allow_unpriced` accepts others. Default: unlimited.',
  )
export const AllowUnpriced = z
  .boolean()
  .describe(
    'Whether models without a known cost may be asked under `max_budget_usd`, which then does not count their answers. Otherwise an answer without a cost ends the run with `budget_limit`. Default: false.',
  )
