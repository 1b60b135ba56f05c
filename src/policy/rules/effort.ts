/** How much comparing one decision may take. A command can be long and rules many: comparing all of it takes minutes. */

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
