/** How often an agent may repeat itself: what is counted, when the model gets advice, and when its run ends. */
import type { ToolCall } from '../../state/tool-call.ts'
import { roundsOf } from '../../state/repeats/cycle.ts'
import type { Repeats, Result } from '../../state/repeats/repeats.ts'
import { COMPARED_AFTER, repeatsAfterResult } from '../../state/repeats/repeats.ts'

/** What an agent repeats until its run ends; described in docs/runs.md. */
export type StuckHabit = 'same' | 'alike' | 'error' | 'kind' | 'failures' | 'texts'

/** `unchanged`: a run that repeats what succeeds is advised, but does not end. */
export type Habit = StuckHabit | 'unchanged'

type Limits = {
  /** Grows by at most one with each answer. */
  readonly count: (repeats: Repeats) => number
  /** The count from which on the model gets advice. */
  readonly adviceAt: number
  /** The count at which the run ends; Infinity if it does not. */
  readonly stuckAt: number
}

/** The first that applies is reported, so the most exact one comes first. */
export const HABITS: Readonly<Record<Habit, Limits>> = {
  same: { count: ({ failures }) => roundsOf(failures?.same), adviceAt: 4, stuckAt: 6 },
  // With different results it may be polling for something, but not forever.
  alike: { count: ({ failures }) => roundsOf(failures?.alike), adviceAt: 8, stuckAt: 12 },
  error: { count: ({ failures }) => failures?.error?.times ?? 0, adviceAt: 8, stuckAt: 12 },
  kind: { count: ({ failures }) => failures?.kind?.times ?? 0, adviceAt: 16, stuckAt: 24 },
  // Nothing fails, and many calls without a wait in between may still be polling.
  unchanged: {
    count: ({ unchanged }) => (unchanged ? COMPARED_AFTER + unchanged.times : 0),
    adviceAt: 20,
    stuckAt: Infinity,
  },
  // Searches that find nothing are failures, too.
  failures: { count: ({ failures }) => failures?.times ?? 0, adviceAt: 40, stuckAt: 60 },
  texts: { count: ({ texts }) => texts ?? 0, adviceAt: 4, stuckAt: 6 },
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of the table above
const NAMES = Object.keys(HABITS) as Habit[]
const STUCK_NAMES = NAMES.filter((name) => name !== 'unchanged')

/** Returns what the agent repeats so often that its run ends. */
export const stuckIn = (repeats: Repeats): StuckHabit | undefined =>
  STUCK_NAMES.find((habit) => HABITS[habit].count(repeats) >= HABITS[habit].stuckAt)

/** Returns true if one more answer can be too many. */
export const isNearlyStuck = (repeats: Repeats): boolean =>
  STUCK_NAMES.some((habit) => HABITS[habit].count(repeats) >= HABITS[habit].stuckAt - 1)

/** Returns the advice for the model with the result that completes one repetition too many. */
export function adviceFor(repeats: Repeats, result: Result, openCalls: readonly ToolCall[]): string | undefined {
  // What follows hashes: almost always it is known without it that there is no advice.
  const mayGet = (habit: Habit, count: number) => isAdvised(habit, count) || isAdvised(habit, count + 1)
  if (!NAMES.some((habit) => mayGet(habit, HABITS[habit].count(repeats)))) return undefined
  if (openCalls.length !== 1) return undefined
  const after = repeatsAfterResult(repeats, result, openCalls)
  if (stuckIn(after)) return undefined
  const habit = NAMES.find((each) => isAdvised(each, HABITS[each].count(after)))
  return habit && adviceOn(habit, HABITS[habit].count(after))
}

/** With each answer before the end. Without an end only at first, and whenever the count has doubled. */
function isAdvised(habit: Habit, count: number): boolean {
  const { adviceAt, stuckAt } = HABITS[habit]
  return count >= adviceAt && (stuckAt !== Infinity || Number.isInteger(Math.log2(count / adviceAt)))
}

/** Returns the advice for a model that continues without calling a tool. */
export function adviceOnTexts(repeats: Repeats): string | undefined {
  const { count, adviceAt, stuckAt } = HABITS.texts
  const times = count(repeats)
  return times >= adviceAt && times < stuckAt ? adviceOn('texts', times) : undefined
}

function adviceOn(habit: Habit, times: number): string {
  if (habit === 'unchanged') return done(habit, times)
  const unit = habit === 'same' || habit === 'alike' || habit === 'texts' ? 'times' : 'such answers'
  return `${done(habit, times)} After ${HABITS[habit].stuckAt} ${unit} the run ends.`
}

const OTHER_WAY = 'Do something else: check what you assume, try another way, or tell the user what you need.'
const NO_NEWS =
  'Use what you know already, or tell the user what you need. If you wait for something, make one call that waits longer.'

function done(habit: Habit, times: number): string {
  switch (habit) {
    case 'same':
      return `You have made the same failing calls ${times} times in a row, with the same results. ${OTHER_WAY}`
    case 'alike':
      return `You have made the same failing calls ${times} times in a row. ${OTHER_WAY}`
    case 'error':
      return `Your last ${times} answers failed with the same error, whatever you called. ${OTHER_WAY}`
    case 'kind':
      return `Your last ${times} answers failed with the same kind of error, whatever you called. ${OTHER_WAY}`
    case 'unchanged':
      return `Your last ${times} answers only repeated a few calls, and their results did not change. ${NO_NEWS}`
    case 'failures':
      return `All calls of your last ${times} answers failed. ${OTHER_WAY}`
    case 'texts':
      return `You have answered ${times} times in a row without calling a tool. Call the tools that do what is missing, or tell the user what you need.`
  }
}
