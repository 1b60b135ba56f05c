/** Divides the budget of a replay among its forks, so that all together stay below it. */
import type { ReplayRow } from '../contract/replay.ts'

/** Forks of one replay that work at the same time. */
export const MAX_REPLAYING = 4

export class CostBudget {
  readonly #max: number
  /** What forks may spend that work now, by their id. */
  readonly #reserved = new Map<string, number>()
  /** Resolves with the next release. */
  #released = Promise.withResolvers<void>()

  constructor(max: number) {
    this.#max = max
  }

  /**
   * Resolves to the share of a fork that begins now, when something is left for it; 0 if nothing is, and no other fork works.
   * What one does not spend is for those that follow.
   */
  async reserve(id: string, rows: () => readonly ReplayRow[]): Promise<number> {
    const own = this.#reserved.get(id)
    if (own !== undefined) return own
    for (;;) {
      const share = this.#shareFor(id, rows())
      if (share > 0) this.#reserved.set(id, share)
      if (share > 0 || this.#reserved.size === 0) return share
      await this.#released.promise
    }
  }

  #shareFor(id: string, rows: readonly ReplayRow[]): number {
    const heldCost = [...this.#reserved.values()].reduce((sum, each) => sum + each, 0)
    const others = rows.filter((row) => !this.#reserved.has(row.conversation_id))
    const remainingCost = this.#max - spentOn(others) - heldCost
    const waiting = others.filter(({ status, conversation_id: fork }) => status === 'pending' || fork === id).length
    const lanes = Math.min(MAX_REPLAYING - this.#reserved.size, waiting)
    return Math.max(0, remainingCost / Math.max(1, lanes))
  }

  /** A fork that an earlier server has begun keeps its share. */
  keep(id: string, share: number): void {
    this.#reserved.set(id, share)
  }

  release(id: string): void {
    this.#reserved.delete(id)
    this.#released.resolve()
    this.#released = Promise.withResolvers()
  }
}

export const spentOn = (rows: readonly ReplayRow[]): number => rows.reduce((sum, { cost_usd = 0 }) => sum + cost_usd, 0)
