/**
 * Whether a log is the one that was seen before, and where it ends, at the cost of a system call or two: what a start of
 * the server asks of every conversation there is. Looks at files that nobody writes at the time.
 */
import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs'
import type { Stats } from 'node:fs'
import { stat } from 'node:fs/promises'
import { mapBounded } from '../../lib/map-bounded.ts'
import { createSlices } from '../../lib/time-slices.ts'
import type { EventHeader } from '../../events/event-header.ts'
import { LF, verifyLine } from './log/event-line.ts'

/**
 * Equal stamps, equal log: a log only grows, so an older copy of it has another size, and whoever writes it by hand
 * changes the time. `mtimeMs` has fractions.
 */
export type LogStamp = { readonly size: number; readonly mtimeMs: number }

/** Of a page of the log that is read at once; a longer last event is not looked for. */
const ENDING_BYTES = 8192

/** Calls in this thread, until a batch has taken so long that the disk must have been waited for, microseconds a file. */
const BATCH = 256
const WAITED_US = 100
/** Then so many in the thread pool, as many at a time: a disk answers many at once sooner than one after another. */
const LONG_BATCH = 4096
const CONCURRENCY = 64

export const isSameStamp = (a: LogStamp, b: LogStamp): boolean => a.size === b.size && a.mtimeMs === b.mtimeMs

/** Undefined when there is no such file, or it cannot be looked at. */
export function stampOf(path: string): LogStamp | undefined {
  try {
    return toStamp(statSync(path, { throwIfNoEntry: false }))
  } catch {
    return undefined // whoever opens it will say why
  }
}

/**
 * In the order of the paths. Of a hundred thousand files that the system has in memory, calls in this thread take 0.4 s,
 * those through the thread pool 0.9 s; others have their turns in between.
 */
export async function stampsOf(paths: readonly string[], signal: AbortSignal): Promise<(LogStamp | undefined)[]> {
  const stamps: (LogStamp | undefined)[] = []
  const slices = createSlices()
  for (let hasWaited = false; stamps.length < paths.length;) {
    signal.throwIfAborted()
    const batch = paths.slice(stamps.length, stamps.length + (hasWaited ? LONG_BATCH : BATCH))
    const began = performance.now()
    if (hasWaited) stamps.push(...(await mapBounded(batch, CONCURRENCY, stampInPool)))
    else stamps.push(...batch.map(stampOf))
    // After each long batch it is tried again.
    hasWaited = !hasWaited && (performance.now() - began) * 1000 > WAITED_US * batch.length
    await slices.rest()
  }
  return stamps
}

/** The last event of a log whose end is whole and short. Undefined for any other, which has to be opened to know. */
export function endingOf(path: string): EventHeader | undefined {
  try {
    const file = openSync(path, 'r')
    try {
      const { size } = fstatSync(file)
      const bytes = Buffer.allocUnsafe(Math.min(size, ENDING_BYTES))
      const start = size - bytes.length
      const isWhole = readSync(file, bytes, 0, bytes.length, start) === bytes.length && bytes.at(-1) === LF
      return isWhole ? lastLine(bytes, start === 0) : undefined
    } finally {
      closeSync(file)
    }
  } catch {
    return undefined // as above
  }
}

function lastLine(bytes: Buffer, isFromStart: boolean): EventHeader | undefined {
  const end = bytes.length - 1
  const before = bytes.lastIndexOf(LF, end - 1)
  return before === -1 && !isFromStart ? undefined : verifyLine(bytes, before + 1, end)
}

const stampInPool = (path: string): Promise<LogStamp | undefined> => stat(path).then(toStamp, () => undefined)

const toStamp = (stats: Stats | undefined): LogStamp | undefined =>
  stats && { size: stats.size, mtimeMs: stats.mtimeMs }
