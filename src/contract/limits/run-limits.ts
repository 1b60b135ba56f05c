/** Limits of a run and of a conversation, as clients set them. */
import { z } from 'zod'

/** The limit if no other number is given. */
export const DEFAULT_ITERATIONS = 500
const MaxIterations = z
  .int()
  .min(1)
  .max(100_000)
  .describe(`Maximum number of model answers per run. Default: ${DEFAULT_ITERATIONS}.`)
const MaxSeconds = z
  .number()
  .positive()
  .max(2_592_000)
  .describe('Maximum duration of a run in seconds. Default: unlimited.')
const MaxTokens = z
  .int()
  .positive()
  .describe('Maximum number of input and output tokens of a run, as the model reports them. Default: unlimited.')
const MaxBudget = z
  .number()
  .positive()
  .describe(
    'Maximum cost of the whole conversation in USD. Each model that may be asked needs a price that the server knows, or an endpoint that reports costs; `allow_unpriced` accepts others. Default: unlimited.',
  )
const AllowUnpriced = z
  .boolean()
  .describe(
    'Whether models without a known cost may be asked under `max_budget_usd`, which then does not count their answers. Otherwise an answer without a cost ends the run with `budget_limit`. Default: false.',
  )

const flag = z.boolean().optional()

/** The settings of these names, for the table of settings. */
export const RUN_LIMITS = {
  max_iteration_per_run: {
    create: MaxIterations.optional(),
    update: MaxIterations.optional(),
    stored: z.int(),
    shown: z.int(),
    from: 'sent',
  },
  max_seconds_per_run: {
    create: MaxSeconds.optional(),
    update: MaxSeconds.optional(),
    stored: z.number().optional(),
    shown: z.number().optional(),
    from: 'sent',
  },
  max_tokens_per_run: {
    create: MaxTokens.optional(),
    update: MaxTokens.optional(),
    stored: z.int().optional(),
    shown: z.int().optional(),
    from: 'sent',
  },
  max_budget_usd: {
    create: MaxBudget.optional(),
    update: MaxBudget.optional(),
    stored: z.number().optional(),
    shown: z.number().optional(),
    from: 'sent',
  },
  allow_unpriced: {
    create: AllowUnpriced.optional(),
    update: AllowUnpriced.optional(),
    stored: flag,
    shown: flag,
    from: 'sent',
  },
} as const
