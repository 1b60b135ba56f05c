/** A store whose server can die, in a process that lives on: what `kill -9` is to tests that need it often. */
import { Problem } from '../../src/contract/problem.ts'
import type { EventStore, StoredLog } from '../../src/events/event-store.ts'
import { createJsonlStore } from '../../src/events/jsonl-store.ts'

/** Its logs take nothing more once they are of a server that is dead, though its code still runs. */
export function mortalStore(): EventStore & { home: { directory: string }; die: () => Promise<void> } {
  const home = { directory: '' }
  const storing = new Set<Promise<unknown>>()
  let lives = 0
  const wrap = (log: StoredLog): StoredLog => {
    const [life, append] = [lives, log.append.bind(log)]
    log.append = (...args) => {
      if (life !== lives) return Promise.reject(new Problem('storage_failed', 'The server is dead.'))
      const stored = append(...args)
      storing.add(stored)
      return stored
    }
    return log
  }
  return {
    home,
    create: async (id) => wrap(await createJsonlStore(home).create(id)),
    copy: async (...args) => wrap(await createJsonlStore(home).copy(...args)),
    async open(id) {
      const opened = await createJsonlStore(home).open(id)
      return { ...opened, log: wrap(opened.log) }
    },
    delete: (id) => createJsonlStore(home).delete(id),
    async die() {
      lives++
      await Promise.allSettled(storing)
    },
  }
}
