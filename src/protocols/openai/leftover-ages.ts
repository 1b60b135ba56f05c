/** Decides what has not changed for a day. Clocks of machines differ and jump: this process counts the time itself. */

/** The result of a function may come this late, in milliseconds. Another instance may still answer. */
const REACHABLE_MS = 24 * 60 * 60 * 1000

export type LeftoverClocks = {
  /** Unix time in milliseconds. */
  readonly now: () => number
  /** A monotonic clock, in milliseconds. */
  readonly elapsed: () => number
}

const CLOCKS: LeftoverClocks = { now: Date.now, elapsed: () => performance.now() }

type SeenChange = { readonly updatedAt: string; readonly since: number }

export class LeftoverAges {
  readonly #clocks: LeftoverClocks
  #trustsClock: boolean
  #seenChanges: ReadonlyMap<string, SeenChange> = new Map()

  /** `trustsClock`: in the first look, ages by the clock count, for what a former process has left on the same machine. */
  constructor({ trustsClock }: { readonly trustsClock: boolean }, clocks = CLOCKS) {
    this.#clocks = clocks
    this.#trustsClock = trustsClock
  }

  /** Returns the ids of those that are old. Call it with all that there are. */
  look(all: readonly { readonly id: string; readonly updated_at: string }[]): string[] {
    const { now, elapsed } = this.#clocks
    const [clockNow, monotonicNow] = [now(), elapsed()]
    const before = this.#seenChanges
    const changes = all.map(({ id, updated_at: updatedAt }) => {
      const former = before.get(id)
      const since =
        former?.updatedAt === updatedAt
          ? former.since
          : monotonicNow - (this.#trustsClock ? Math.max(0, clockNow - Date.parse(updatedAt)) : 0)
      return [id, { updatedAt, since }] as const
    })
    this.#trustsClock = false
    this.#seenChanges = new Map(changes)
    return changes.filter(([, { since }]) => monotonicNow - since >= REACHABLE_MS).map(([id]) => id)
  }

  /** Returns true if it is old and has not changed since the last look. */
  isStillOld(id: string, updatedAt: string): boolean {
    const change = this.#seenChanges.get(id)
    return change?.updatedAt === updatedAt && this.#clocks.elapsed() - change.since >= REACHABLE_MS
  }
}
