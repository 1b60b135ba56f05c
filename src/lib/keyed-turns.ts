/** Runs what belongs to one key strictly one after another; different keys know nothing of each other. */

export type KeyedTurns = <T>(key: string, work: () => Promise<T>) => Promise<T>

/** Work that fails fails its own caller only; the next in line runs all the same. */
export function createKeyedTurns(): KeyedTurns {
  const last = new Map<string, Promise<unknown>>()
  return (key, work) => {
    const turn = (last.get(key) ?? Promise.resolve()).then(work)
    const settled = turn.then(
      () => undefined,
      () => undefined,
    )
    last.set(key, settled)
    // Without this the map would hold every key ever used.
    void settled.then(() => last.get(key) === settled && last.delete(key))
    return turn
  }
}
