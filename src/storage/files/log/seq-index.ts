/**
 * Finds an event's position in a log file without reading the file: a log is sorted by seq and by time, and each line
 * contains both, so a few small reads locate any event, in a log of a million events as in one of ten.
 *
 * An index of every event would cost a scan of the whole file at first use, and memory that grows with the log. This
 * one keeps at most `MAX_WAYPOINTS` waypoints, learnt from reads; it also works without any.
 */
import { Problem } from '../../../contract/problem.ts'
import type { EventHeader } from '../../../events/event-header.ts'
import { LF, readHeader } from './event-line.ts'
import type { Source } from './line-blocks.ts'

/** A line that starts at `offset`. `rank` is its sort key: its seq, or its time in ms. */
type Waypoint = { rank: number; offset: number }

/** 16 KB of memory per log in use. */
const MAX_WAYPOINTS = 1024
/** Close enough: the reader skips the rest, because it reads about as much anyway. */
const NEAR_BYTES = 16 * 1024
/** Room for the rest of one line of common size and the beginning of the next. */
const PROBE_BYTES = 4 * 1024

export class SeqIndex {
  #waypoints: Waypoint[] = []

  /** Records where the line with this seq starts. */
  learn(seq: number, offset: number): void {
    const at = this.#firstFrom(seq)
    const before = this.#waypoints[at - 1]
    const after = this.#waypoints[at]
    const isNew = offset - (before?.offset ?? 0) >= NEAR_BYTES && (after?.offset ?? Infinity) - offset >= NEAR_BYTES
    if (!isNew) return
    this.#waypoints.splice(at, 0, { rank: seq, offset })
    if (this.#waypoints.length > MAX_WAYPOINTS) this.#waypoints = this.#waypoints.filter((_, i) => i % 2 === 0)
  }

  forget(): void {
    this.#waypoints = []
  }

  /** Returns the offset of a line at or shortly before the one with this seq. `end` is the end of the log. */
  async seekSeq(source: Source, seq: number, end: { head: number; offset: number }): Promise<number> {
    const at = this.#firstFrom(seq)
    if (this.#waypoints[at]?.rank === seq) return this.#waypoints[at].offset
    return await closeIn({
      source,
      target: seq,
      rankOf: ({ seq }) => seq,
      low: this.#waypoints[at - 1] ?? { rank: 1, offset: 0 },
      high: this.#waypoints[at] ?? { rank: end.head + 1, offset: end.offset },
      end: end.offset,
      learn: (header, offset) => this.learn(header.seq, offset),
    })
  }

  /** Returns the offset of a line at or shortly before the first with this time (ms) or later. */
  async seekTime(source: Source, time: number, end: { offset: number }): Promise<number> {
    return await closeIn({
      source,
      target: time,
      rankOf: ({ timestamp }) => Date.parse(timestamp),
      low: { rank: -Infinity, offset: 0 },
      high: { rank: Infinity, offset: end.offset },
      end: end.offset,
      learn: (header, offset) => this.learn(header.seq, offset),
    })
  }

  /** Returns the index of the first waypoint with this seq or a higher one. */
  #firstFrom(seq: number): number {
    let low = 0
    let high = this.#waypoints.length
    while (low < high) {
      const middle = (low + high) >>> 1
      // oxlint-disable-next-line typescript/no-non-null-assertion -- the index is within bounds
      if (this.#waypoints[middle]!.rank < seq) low = middle + 1
      else high = middle
    }
    return low
  }
}

type Search = {
  source: Source
  target: number
  rankOf: (header: EventHeader) => number
  /** A line before the target, or the first of all. */
  low: Waypoint
  /** No line between this offset and the target's is of interest; not necessarily the start of a line. */
  high: Waypoint
  end: number
  learn: (header: EventHeader, offset: number) => void
}

async function closeIn({ source, target, rankOf, low, high, end, learn }: Search): Promise<number> {
  // Interpolation succeeds immediately if events are of similar size; every second step bisects the rest, so that a log
  // with one giant event and a thousand small ones is searched fast as well.
  for (let byProportion = true; high.offset - low.offset > NEAR_BYTES; byProportion = !byProportion) {
    const at = byProportion ? proportional(low, high, target) : middle(low, high)
    const line = await firstLineAfter(source, at, high.offset, end)
    if (line) learn(line.header, line.offset)
    const rank = line ? rankOf(line.header) : high.rank
    // No line starts between `at` and the one found: if that is too far, so is everything after `at`. Without this,
    // each step inside a giant line would read to its end again.
    if (line && rank < target) low = { rank, offset: line.offset }
    else high = { rank, offset: at }
  }
  return low.offset
}

function proportional(low: Waypoint, high: Waypoint, target: number): number {
  const share = (target - low.rank) / (high.rank - low.rank)
  if (!(share >= 0 && share <= 1)) return middle(low, high)
  // Aim a little earlier: landing just after the target would take another step.
  const at = Math.floor(low.offset + share * (high.offset - low.offset)) - NEAR_BYTES / 2
  return Math.max(low.offset, at)
}

function middle(low: Waypoint, high: Waypoint): number {
  return Math.floor((low.offset + high.offset) / 2)
}

/** Returns the first line that starts after byte `at` and before `limit`. */
async function firstLineAfter(
  source: Source,
  at: number,
  limit: number,
  end: number,
): Promise<{ header: EventHeader; offset: number } | undefined> {
  let size = PROBE_BYTES
  for (let position = at; position < limit; size *= 2) {
    const bytes = await source.read(position, Math.min(size, end - position))
    const lf = bytes.indexOf(LF)
    if (lf === -1) {
      position += bytes.length
      continue
    }
    const offset = position + lf + 1
    if (offset >= limit) return undefined
    const header = readHeader(bytes, lf + 1, bytes.length) ?? (await headerAt(source, offset, end))
    return { header, offset }
  }
  return undefined
}

async function headerAt(source: Source, offset: number, end: number): Promise<EventHeader> {
  const bytes = await source.read(offset, Math.min(PROBE_BYTES, end - offset))
  const header = readHeader(bytes, 0, bytes.length)
  if (header) return header
  throw new Problem(
    'conversation_damaged',
    `The event log of this conversation is damaged at byte ${offset}. Restore events.jsonl from a backup.`,
    { details: { offset } },
  )
}
