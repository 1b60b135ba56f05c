/** Limits of a run and of a conversation, as clients set them. */
import { z } from 'zod'

export const MaxIterations = z.int().min(1).max(100_000).describe('Maximum number of model answers per run.')
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
    'Maximum cost of the whole conversation in USD. If neither the endpoint nor the list prices of the server say what an answer costs, it needs `input_cost_per_token` and `output_cost_per_token` in `llm_config`. Default: unlimited.',
  )
