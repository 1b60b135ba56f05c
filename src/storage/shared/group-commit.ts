/** Collects items during a commit, and then commits all of them together. */

/** A group stops growing at this size, which limits the memory of one write and the wait of the group's first item. */
const MAX_GROUP_BYTES = 8 * 1024 * 1024

export type GroupCommit<T> = {
  /** The first item is committed immediately, within this tick: an append to an idle log does not wait. */
  add(item: T, bytes: number): void
  /** Resolves when nothing is waiting or in progress; the caller makes sure that nothing more is added. */
  settled(): Promise<void>
}

/** `commit` settles each item of its group and never rejects. Groups are committed one after another. */
export function createGroupCommit<T>(commit: (group: readonly T[]) => Promise<void>): GroupCommit<T> {
  let waiting: { item: T; bytes: number }[] = []
  let running: Promise<void> | undefined

  async function run(): Promise<void> {
    while (waiting.length > 0) await commit(takeGroup())
    running = undefined
  }

  function takeGroup(): T[] {
    const group: T[] = []
    let total = 0
    for (const { item, bytes } of waiting) {
      if (group.length > 0 && total + bytes > MAX_GROUP_BYTES) break
      total += bytes
      group.push(item)
    }
    waiting = waiting.slice(group.length)
    return group
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
