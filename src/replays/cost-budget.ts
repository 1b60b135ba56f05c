/** Divides the budget of a replay among its forks, so that all together stay below it. */
import type { ReplayRow } from '../contract/replay.ts'

/** Forks of one replay that work at the same time. */
export const MAX_REPLAYING = 4

export class CostBudget {
  readonly #max: number
  /** What forks may spend that work now, by their id. */
  readonly #reserved = new Map<string, number>()

  constructor(max: number) {
    this.#max = max
  }

  /** Returns the share of a fork that begins now; 0 if nothing is left. What it does not spend is for those that follow. */
  reserve(id: string, rows: readonly ReplayRow[]): number {
    const held = [...this.#reserved.values()].reduce((sum, each) => sum + each, 0)
    const left = this.#max - spentOn(rows.filter((row) => !this.#reserved.has(row.conversation_id))) - held
    const waiting = rows.filter(({ status, conversation_id: fork }) => status === 'pending' || fork === id).length
    const lanes = Math.min(MAX_REPLAYING - this.#reserved.size, waiting)
    const share = Math.max(0, left / Math.max(1, lanes))
    this.#reserved.set(id, share)
    return share
  }

  /** A fork that an earlier server has begun keeps its share. */
  keep(id: string, share: number): void {
    this.#reserved.set(id, share)
  }

  release(id: string): void {
    this.#reserved.delete(id)
  }
}

export const spentOn = (rows: readonly ReplayRow[]): number => rows.reduce((sum, { cost_usd = 0 }) => sum + cost_usd, 0)
