/**
 * Detects whether a log is unchanged, and where it ends, at the cost of a system call or two: startup checks every
 * conversation this way. Use it only for files that nobody is writing.
 */
import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs'
import type { Stats } from 'node:fs'
import { stat } from 'node:fs/promises'
import { mapBounded } from '../../lib/map-bounded.ts'
import { createSlices } from '../../lib/time-slices.ts'
import type { EventHeader } from '../../events/event-header.ts'
import { LF, verifyLine } from './log/event-line.ts'

/**
 * Equal stamps mean equal logs: a log only grows, so an older copy has another size, and a manual edit changes the
 * time. `mtimeMs` has fractions.
 */
export type LogStamp = { readonly size: number; readonly mtimeMs: number }

/** Bytes read at once from the end of the log; a longer last event is not looked for. */
const ENDING_BYTES = 8192

/**
 * Files checked synchronously, until a batch takes so long that it must have waited for the disk; microseconds per
 * file.
 */
const BATCH = 256
const WAITED_US = 100
/**
 * The number of files that are then in the thread pool concurrently: a disk answers many requests at once faster than
 * one after another.
 */
const LONG_BATCH = 4096
const CONCURRENCY = 64

export const isSameStamp = (a: LogStamp, b: LogStamp): boolean => a.size === b.size && a.mtimeMs === b.mtimeMs

/** Returns undefined if the file does not exist or cannot be read. */
export function stampOf(path: string): LogStamp | undefined {
  try {
    return toStamp(statSync(path, { throwIfNoEntry: false }))
  } catch {
    return undefined // opening the log reports the reason
  }
}

/**
 * Returns stamps in the order of the paths. For a hundred thousand files in the page cache, synchronous calls take 0.4
 * s, calls through the thread pool 0.9 s; other work runs in between.
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
    // Retry synchronously after each long batch.
    hasWaited = !hasWaited && (performance.now() - began) * 1000 > WAITED_US * batch.length
    await slices.rest()
  }
  return stamps
}

/**
 * Returns the last event of a log whose end is complete and short. Undefined for any other log, which must be opened.
 */
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
    return undefined // opening the log reports the reason
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
