/** Collects what comes in while a commit is under way, and commits all of it at once when that is done. */

/** A group stops growing here: the memory of one write, and how long the first of a group waits for the last. */
const MAX_GROUP_BYTES = 8 * 1024 * 1024

export type GroupCommit<T> = {
  /** The first to come is committed at once, in this very tick: an append to a quiet log waits for nobody. */
  add(item: T, bytes: number): void
  /** Resolves when nothing is waiting or under way; whoever calls it sees to it that nothing more comes. */
  settled(): Promise<void>
}

/** `commit` settles each item of its group by itself and never rejects. Groups are committed one after another. */
export function createGroupCommit<T>(commit: (group: readonly T[]) => Promise<void>): GroupCommit<T> {
  let waiting: { item: T; bytes: number }[] = []
  let running: Promise<void> | undefined

  async function run(): Promise<void> {
    while (waiting.length > 0) await commit(takeGroup())
    running = undefined
  }

  function takeGroup(): T[] {
    let bytes = 0
    let count = 0
    for (const one of waiting) {
      if (count > 0 && bytes + one.bytes > MAX_GROUP_BYTES) break
      bytes += one.bytes
      count += 1
    }
    const group = waiting.slice(0, count)
    waiting = waiting.slice(count)
    return group.map(({ item }) => item)
  }

  return {
    add(item, bytes) {
      waiting.push({ item, bytes })
      running ??= run()
    },
    async settled() {
      await running
    },
  }
}
