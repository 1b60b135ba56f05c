/**
 * Looks regularly for conversations that have been idle for long and closes them, and their idle shells before that
 * while the server is short of memory, processes or file descriptors. Decides when, not how.
 */
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

/** Returns a stop function. */
export function watchIdle(deps: IdleWatchDeps): () => void {
  const { afterMs, shortMs = SHORT_MS } = deps
  const everyMs = Math.ceil(Math.min(afterMs, shortMs) / LOOKS)
  let isLooking = false
  const look = async () => {
    if (isLooking) return
    isLooking = true
    await closeIdle(deps).finally(() => (isLooking = false))
  }
  const timer = setInterval(() => void look(), timerMs(everyMs)).unref()
  return () => clearInterval(timer)
}

async function closeIdle(deps: IdleWatchDeps): Promise<void> {
  const { uses, openIds, close, closeShells, afterMs, isShort, shortMs = SHORT_MS } = deps
  uses.forgetClosed()
  const short = isShort()
  // Also those of conversations that somebody follows.
  if (short) await mapBounded([...openIds()], CONCURRENCY, (id) => closeShells(id, shortMs))
  const ms = short ? Math.min(afterMs, shortMs) : afterMs
  const idle = [...openIds()].filter((id) => uses.idleMs(id) >= ms)
  await mapBounded(idle, CONCURRENCY, close)
}
