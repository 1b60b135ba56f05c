/**
 * Counts answers that are only a few different ones, in any order: the same answer again and again, and several that take
 * turns. Pure folds in constant space.
 */

/** Answers that may take turns. */
export const MAX_DIFFERENT = 5

export type Cycle = {
  /** The latest different answers, the newest first: at most `MAX_DIFFERENT`. */
  readonly recent: readonly string[]
  /** At index n: the number of the latest answers among which there are at most n + 1 different ones. */
  readonly lengths: readonly number[]
}

const EMPTY: Cycle = { recent: [], lengths: Array.from({ length: MAX_DIFFERENT }, () => 0) }

export function cycleAfter({ recent, lengths }: Cycle = EMPTY, answer: string): Cycle {
  const found = recent.indexOf(answer)
  const age = found < 0 ? MAX_DIFFERENT : found
  return {
    recent: withNewest(recent, answer),
    // With fewer different answers than lie between it and the last time, everything before those ends.
    lengths: lengths.map((length, at) => 1 + (at >= age ? length : (lengths[at - 1] ?? 0))),
  }
}

/** Returns how often the agent went round: each of a few different answers this many times, on average. */
export const roundsOf = (cycle: Cycle | undefined): number =>
  cycle ? Math.max(...cycle.lengths.map((length, at) => Math.floor(length / (at + 1)))) : 0

/** Answers in a row, each of which repeats one of the few before it. Something new begins another one. */
export type Streak = {
  /** The latest different answers, the newest first: at most `MAX_DIFFERENT`. */
  readonly recent: readonly string[]
  readonly times: number
}

const NO_STREAK: Streak = { recent: [], times: 0 }

export function streakAfter({ recent, times }: Streak = NO_STREAK, answer: string): Streak {
  return { recent: withNewest(recent, answer), times: recent.includes(answer) ? times + 1 : 1 }
}

const withNewest = (recent: readonly string[], answer: string): readonly string[] =>
  recent[0] === answer ? recent : [answer, ...recent.filter((each) => each !== answer)].slice(0, MAX_DIFFERENT)
