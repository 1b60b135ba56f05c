/** How often an agent may repeat itself: what is counted, when the model gets advice, and when its run ends. */
import type { ToolCall } from '../../state/tool-call.ts'
import type { Repeats, Result } from '../../state/repeats/repeats.ts'
import { COMPARED_AFTER, NO_REPEATS, repeatsAfterResult } from '../../state/repeats/repeats.ts'

/** What an agent repeats until its run ends; described in docs/runs.md. */
export type Habit = 'same' | 'failures' | 'texts'

type Limits = {
  /** The count from which on the model gets advice. */
  readonly adviceAt: number
  /** The count at which the run ends. */
  readonly stuckAt: number
}

/** The first that applies is reported, so the most exact one comes first. */
export const HABITS: Readonly<Record<Habit, Limits>> = {
  same: { adviceAt: 4, stuckAt: 6 },
  // Searches that find nothing are failures, too, and calls that poll for something until they succeed.
  failures: { adviceAt: 8, stuckAt: 15 },
  texts: { adviceAt: 4, stuckAt: 6 },
}

/** Each grows by at most one with each answer. */
export const countsIn = ({ failures, texts = 0 }: Repeats): Readonly<Record<Habit, number>> => ({
  same: failures?.same ?? 0,
  failures: failures?.times ?? 0,
  texts,
})

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of the table above
const NAMES = Object.keys(HABITS) as Habit[]

/** Returns what the agent repeats so often that its run ends. */
export function stuckIn(repeats: Repeats): Habit | undefined {
  // What is counted begins again with each message.
  if (repeats === NO_REPEATS) return undefined
  const counts = countsIn(repeats)
  return NAMES.find((habit) => counts[habit] >= HABITS[habit].stuckAt)
}

/** Returns true if one more answer can be too many. */
export function isNearlyStuck(repeats: Repeats): boolean {
  const counts = countsIn(repeats)
  return NAMES.some((habit) => counts[habit] >= HABITS[habit].stuckAt - 1)
}

/** Returns the advice for the model with the result that completes one repetition too many. */
export function adviceFor(repeats: Repeats, result: Result, openCalls: readonly ToolCall[]): string | undefined {
  if (openCalls.length !== 1) return undefined
  const after = repeatsAfterResult(repeats, result, openCalls)
  if (stuckIn(after)) return undefined
  const counts = countsIn(after)
  const habit = NAMES.find((each) => counts[each] >= HABITS[each].adviceAt)
  return habit ? adviceOn(habit, counts[habit]) : adviceOnUnchanged(unchangedIn(after))
}

/** Returns the advice for a model that continues without calling a tool. */
export function adviceOnTexts(repeats: Repeats): string | undefined {
  const { adviceAt, stuckAt } = HABITS.texts
  const times = countsIn(repeats).texts
  return times >= adviceAt && times < stuckAt ? adviceOn('texts', times) : undefined
}

const OTHER_WAY = 'Do something else: check what you assume, try another way, or tell the user what you need.'

function adviceOn(habit: Habit, times: number): string {
  const unit = habit === 'failures' ? 'such answers' : 'times'
  return `${describeHabit(habit, times)} After ${HABITS[habit].stuckAt} ${unit} the run ends.`
}

function describeHabit(habit: Habit, times: number): string {
  switch (habit) {
    case 'same':
      return `You have made the same failing calls ${times} times in a row, with the same results. ${OTHER_WAY}`
    case 'failures':
      return `All calls of your last ${times} answers failed. ${OTHER_WAY}`
    case 'texts':
      return `You have answered ${times} times in a row without calling a tool. Call the tools that do what is missing, or tell the user what you need.`
  }
}

/** The answers that only repeated a few calls without any change in their results. */
export const unchangedIn = ({ unchanged }: Repeats): number => (unchanged ? COMPARED_AFTER + unchanged.times : 0)

/** The number of answers without any change, also when their calls succeed, from which on the model gets advice. */
export const UNCHANGED_ADVICE_AT = 20

/**
 * Returns advice at first, and whenever the count has doubled. The run does not end: many calls without a wait in
 * between may be polling.
 */
function adviceOnUnchanged(times: number): string | undefined {
  if (times < UNCHANGED_ADVICE_AT || !Number.isInteger(Math.log2(times / UNCHANGED_ADVICE_AT))) return undefined
  return `Your last ${times} answers only repeated a few calls, and their results did not change. Use what you know already, or tell the user what you need. If you wait for something, make one call that waits longer.`
}
