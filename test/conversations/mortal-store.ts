/** A store whose server can die, and whose disk can fail, in a process that lives on: what `kill -9` and a full disk are to tests that need them often. */
import { Problem } from '../../src/contract/problem.ts'
import type { EventStore, StoredLog } from '../../src/events/event-store.ts'
import { createJsonlStore } from '../../src/storage/files/log/jsonl-store.ts'
import { takeTime } from '../support/take-time.ts'

/**
 * What an append is refused with; after `storage_failed` the log takes nothing more, as the real one. `stored_and_failed`
 * is the same, but what was refused is in the file after all. `slow` refuses nothing: it takes its time, and what is
 * appended meanwhile waits.
 */
export type Fault = 'storage_full' | 'storage_failed' | 'stored_and_failed' | 'unavailable' | 'slow'

const SLOW_MS = 20

export type MortalStore = EventStore & {
  readonly home: { directory: string }
  /** What is wrong with the disk, asked before each append. */
  fault: (conversationId: string) => Fault | undefined
  /** Its logs take nothing more from here on, though the code of the server still runs. */
  readonly die: () => Promise<void>
}

export function mortalStore(): MortalStore {
  const home = { directory: '' }
  const storing = new Set<Promise<unknown>>()
  let lives = 0
  const wrap = (log: StoredLog, life: number): StoredLog => {
    const append = log.append.bind(log)
    let hasFailed = false
    let slow: Promise<unknown> | undefined
    const appendInTime = (...args: Parameters<typeof append>): ReturnType<typeof append> => {
      if (life !== lives) return Promise.reject(new Problem('storage_failed', 'The server is dead.'))
      return append(...args)
    }
    log.append = (...args) => {
      if (life !== lives) return Promise.reject(new Problem('storage_failed', 'The server is dead.'))
      const fault = hasFailed ? 'storage_failed' : store.fault(log.conversationId)
      hasFailed = fault === 'storage_failed' || fault === 'stored_and_failed'
      const code = fault === 'stored_and_failed' ? 'storage_failed' : fault === 'slow' ? undefined : fault
      if (code && code === fault) return Promise.reject(new Problem(code, `The disk did not take it: ${code}.`))
      if (fault === 'slow') slow = Promise.allSettled([slow, takeTime(SLOW_MS)])
      const stored = slow ? slow.then(() => appendInTime(...args)) : append(...args)
      storing.add(stored)
      if (!code) return stored
      return stored.then(() => {
        throw new Problem(code, 'The disk says that it did not take it.')
      })
    }
    return log
  }
  const store: MortalStore = {
    home,
    fault: () => undefined,
    // The life it was asked in: the server may die before it has its log.
    async create(...args) {
      const life = lives
      return wrap(await createJsonlStore(home).create(...args), life)
    },
    async copy(...args) {
      const life = lives
      return wrap(await createJsonlStore(home).copy(...args), life)
    },
    async open(id) {
      const life = lives
      const opened = await createJsonlStore(home).open(id)
      return { ...opened, log: wrap(opened.log, life) }
    },
    delete: (id) => createJsonlStore(home).delete(id),
    async die() {
      lives++
      await Promise.allSettled(storing)
    },
  }
  return store
}
