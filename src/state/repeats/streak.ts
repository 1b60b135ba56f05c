/** Counts answers that repeat one of the few before them, in any order. A pure fold in constant space. */

/** Answers that may take turns. */
const MAX_DIFFERENT = 5

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
