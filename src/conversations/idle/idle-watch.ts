/**
 * Closes conversations that nobody uses: those that have been idle for long, looked for regularly, and the least
 * recently used of more than may be open at rest. While the server is short of memory, processes or file descriptors, it
 * closes more of them sooner, and their idle shells before that. Decides when, not how.
 */
import { getHeapStatistics } from 'node:v8'
import { mapBounded } from '../../lib/map-bounded.ts'
import type { Uses } from './uses.ts'
import { timerMs } from '../../lib/bounded-wait.ts'

export type IdleOptions = {
  /** An idle conversation is closed after this many milliseconds without use. */
  readonly afterMs: number
  /** Returns true if the server is short of memory, processes or file descriptors. */
  readonly isShort: () => boolean
  /** The same for conversations and shells while it is short. Default: long enough for a client that sends one request after another. */
  readonly shortMs?: number
  /** How many conversations may be open without being used. Default: by the memory that the heap may take. */
  readonly maxUnused?: number
}

export type IdleWatchDeps = IdleOptions & {
  readonly uses: Uses
  readonly openIds: () => Iterable<string>
  /** Closes the conversation if it is idle. Must not reject. */
  readonly close: (id: string) => Promise<void>
  /** Closes the shells of the conversation that have been idle for `ms`. Must not reject. */
  readonly closeShells: (id: string, ms: number) => Promise<void>
}

const SHORT_MS = 10_000
/** Checks per idle time; a conversation may be closed one interval late. */
const LOOKS = 2
const CONCURRENCY = 8

/** What an open conversation without a history takes, in bytes. */
const OPEN_BYTES = 64 * 1024
/** The part of the heap's limit that conversations may take which nobody uses. */
const UNUSED_HEAP = 0.025
/** The pause between two looks for surplus ones, in milliseconds: many are created meanwhile, and closed together. */
const SURPLUS_LOOK_MS = 100
/** Conversations of one look: those that turn out to be busy must not make it long. */
const MAX_TRIED = 500

export class IdleWatch {
  readonly #deps: IdleWatchDeps
  readonly #maxUnused: number
  readonly #timer: NodeJS.Timeout
  #surplusTimer: NodeJS.Timeout | undefined
  #isLooking = false

  constructor(deps: IdleWatchDeps) {
    this.#deps = deps
    const { afterMs, shortMs = SHORT_MS, maxUnused } = deps
    this.#maxUnused = maxUnused ?? Math.ceil((getHeapStatistics().heap_size_limit * UNUSED_HEAP) / OPEN_BYTES)
    const everyMs = Math.ceil(Math.min(afterMs, shortMs) / LOOKS)
    this.#timer = setInterval(() => void this.#look(() => this.#closeIdle()), timerMs(everyMs)).unref()
  }

  /** Call it when a conversation was opened, or its use has ended. */
  noteUse(): void {
    if (this.#surplusTimer || this.#deps.uses.unused <= this.#maxUnused) return
    this.#surplusTimer = setTimeout(() => {
      this.#surplusTimer = undefined
      if (this.#isLooking) this.noteUse()
      else void this.#look(() => this.#closeSurplus())
    }, SURPLUS_LOOK_MS).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
    clearTimeout(this.#surplusTimer)
  }

  async #look(close: () => Promise<void>): Promise<void> {
    if (this.#isLooking) return
    this.#isLooking = true
    await close().finally(() => (this.#isLooking = false))
  }

  async #closeIdle(): Promise<void> {
    const { uses, openIds, close, closeShells, afterMs, isShort, shortMs = SHORT_MS } = this.#deps
    uses.forgetClosed()
    const short = isShort()
    // This closes those of conversations that somebody follows, too.
    if (short) await mapBounded([...openIds()], CONCURRENCY, (id) => closeShells(id, shortMs))
    const ms = short ? Math.min(afterMs, shortMs) : afterMs
    const idle = [...openIds()].filter((id) => uses.idleMs(id) >= ms)
    await mapBounded(idle, CONCURRENCY, close)
  }

  async #closeSurplus(): Promise<void> {
    const { uses, close } = this.#deps
    const { unused } = uses
    // Others are closed instead of busy ones, which may have been used later.
    for (let remainingTries = Math.min(unused, MAX_TRIED); remainingTries > 0 && uses.unused > this.#maxUnused;) {
      const ids = uses.leastRecent(Math.min(uses.unused - this.#maxUnused, remainingTries))
      if (ids.length === 0) break
      await mapBounded(ids, CONCURRENCY, close)
      // A busy one is asked again after all others.
      for (const id of ids) uses.postpone(id)
      remainingTries -= ids.length
    }
    if (uses.unused < unused) this.noteUse()
  }
}

/** The part of the heap's limit, or of the container's memory, above which memory is short. */
const HIGH_HEAP = 0.7
const HIGH_RESIDENT = 0.85

export function isMemoryShort(): boolean {
  const { used_heap_size, heap_size_limit } = getHeapStatistics()
  if (used_heap_size > heap_size_limit * HIGH_HEAP) return true
  // This is 0 or a huge number outside a container.
  const constrainedBytes = process.constrainedMemory()
  return constrainedBytes > 0 && process.memoryUsage.rss() > constrainedBytes * HIGH_RESIDENT
}
