/** How the agent loop ends by itself: the limits of a run, and answers that were cut off. */
import type { CutReason } from '../../contract/finish-reason.ts'
import type { LoopEnd } from '../loop-end.ts'
import type { Habit } from '../repeats/habits.ts'

export type RunLimits = {
  readonly maxSteps: number | undefined
  readonly maxIterations: number
  readonly maxTokens: number | undefined
  readonly maxBudgetUsd: number | undefined
  /** Whether a budget allows answers whose cost is not known. */
  readonly allowsUnpriced: boolean
}

/** `unpriced` is the model of an answer of this run whose cost is not known. */
export type RunCosts = {
  readonly tokens: number
  readonly costUsd: number | undefined
  readonly unpriced?: string | undefined
}

/** What limits compare. The functions return current values. */
export type LimitReadings = {
  /** Returns the number of model answers in this run. */
  readonly steps: () => number
  /** Returns what the agent repeats too often. */
  readonly stuckIn: () => Habit | undefined
  /** Returns true if one more answer can be what the agent repeats too often. */
  readonly isNearlyStuck: () => boolean
  readonly limits: () => RunLimits
  /** Returns what limits compare: tokens of this run, and the cost of the conversation. */
  readonly spent: () => RunCosts
}

/** The missing part may have been a tool call, so the model did not choose this end. */
export const CUT_OFF: Readonly<Record<CutReason, LoopEnd>> = {
  output_limit: {
    stopReason: 'error',
    failure: {
      type: 'config',
      message:
        'The answer was cut off at the output limit of the model; raise llm_config.max_output_tokens, or run again.',
      retryable: true,
    },
  },
  content_filter: {
    stopReason: 'content_filter',
    failure: {
      type: 'content_filter',
      message: "The provider's content filter ended the answer; change the message, or use another model.",
      retryable: false,
    },
  },
  context_window: {
    stopReason: 'error',
    failure: {
      type: 'context_window',
      message: "The answer was cut off: the conversation no longer fits the model's context window.",
      retryable: false,
    },
  },
}

/** Returns the limit that the run has reached. */
export function metLimit(context: LimitReadings): LoopEnd | undefined {
  const { maxSteps, maxIterations, maxTokens, maxBudgetUsd } = context.limits()
  const habit = context.stuckIn()
  if (habit) return stuckEnd(STUCK[habit])
  if (maxSteps !== undefined && context.steps() >= maxSteps) return { stopReason: 'max_steps' }
  if (context.steps() >= maxIterations) {
    const message = `The run reached its limit of ${maxIterations} steps; raise max_iteration_per_run, or run it again.`
    return { stopReason: 'iteration_limit', failure: { type: 'config', message, retryable: true } }
  }
  if (maxTokens === undefined && maxBudgetUsd === undefined) return undefined
  return unpricedLimit(context) ?? spendingLimit({ maxTokens, maxBudgetUsd }, context.spent())
}

/** The run ends at the first answer without a cost: nothing would limit the next ones. */
export function unpricedLimit({ limits, spent }: Pick<LimitReadings, 'limits' | 'spent'>): LoopEnd | undefined {
  const { maxBudgetUsd, allowsUnpriced } = limits()
  if (maxBudgetUsd === undefined || allowsUnpriced) return undefined
  const { unpriced } = spent()
  if (unpriced === undefined) return undefined
  const message = `The cost of an answer of ${unpriced} is not known, so max_budget_usd cannot limit it; set the prices in llm_config, or allow_unpriced.`
  return { stopReason: 'budget_limit', failure: { type: 'config', message, retryable: false } }
}

function spendingLimit(
  { maxTokens, maxBudgetUsd }: Pick<RunLimits, 'maxTokens' | 'maxBudgetUsd'>,
  { tokens, costUsd = 0 }: RunCosts,
): LoopEnd | undefined {
  if (maxTokens !== undefined && tokens >= maxTokens) {
    const message = `The run used ${tokens} tokens, and its limit is ${maxTokens}; raise max_tokens_per_run, or run it again.`
    return { stopReason: 'token_limit', failure: { type: 'config', message, retryable: true } }
  }
  if (maxBudgetUsd !== undefined && costUsd >= maxBudgetUsd) {
    const message = `The conversation cost ${costUsd.toFixed(4)} USD, and its budget is ${maxBudgetUsd} USD; raise max_budget_usd to continue.`
    return { stopReason: 'budget_limit', failure: { type: 'config', message, retryable: false } }
  }
  return undefined
}

const STUCK: Readonly<Record<Habit, string>> = {
  same: 'The agent made the same failing calls again and again.',
  failures: 'All calls of the agent failed, many times in a row.',
  texts: 'The agent answered again and again without calling a tool, and its run was continued each time.',
}

function stuckEnd(why: string): LoopEnd {
  const message = `${why} Tell it what to do differently, or run it again.`
  return { stopReason: 'stuck', failure: { type: 'tool', message, retryable: false } }
}

export function timeLimit(): LoopEnd {
  const message = 'The run took longer than max_seconds_per_run; raise it, or run again.'
  return { stopReason: 'time_limit', failure: { type: 'config', message, retryable: true } }
}
