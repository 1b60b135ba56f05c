/**
 * Comparing a rule with something: how certain the result is, and how much it may take. A command can be long and rules many: comparing
 * all of it takes minutes.
 */

/** Whether a rule matches something that is not wholly known: `maybe` if it depends on what is not known. */
export type Certainty = 'yes' | 'maybe' | 'no'

export function strongest(each: Iterable<Certainty>): Certainty {
  let foundCertainty: Certainty = 'no'
  for (const one of each) {
    if (one === 'yes') return 'yes'
    if (one === 'maybe') foundCertainty = 'maybe'
  }
  return foundCertainty
}

/** Characters that are compared: at most some 40 ms, measured. */
const MAX_STEPS = 2_000_000

/** Counts the steps of one decision. */
export class Effort {
  #stepsLeft = MAX_STEPS

  /** Returns false when there is nothing left. What is not compared then may match, but certainly does not allow. */
  spend(steps: number): boolean {
    this.#stepsLeft -= steps
    return this.#stepsLeft >= 0
  }

  get isSpent(): boolean {
    return this.#stepsLeft < 0
  }
}
