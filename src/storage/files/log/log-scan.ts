/** Scans a range of a log line by line, in either order, for pages, counts and lookups. */
/* oxlint-disable typescript/no-non-null-assertion -- a block has a start and an end for each of its lines */
import { uuid7Time } from '../../../lib/uuid7.ts'
import { earlierTypes } from '../../../events/earlier-events.ts'
import type { EventHeader } from '../../../events/event-header.ts'
import type { LineGlance } from './event-line.ts'
import { endsWhole, glance, matchTypes, readHeader, storedFromLine } from './event-line.ts'
import { damagedAt } from '../../shared/stored-event.ts'
import type { EventFilter, LogPage, ReadOptions, StoredEvent } from '../../../events/event-store.ts'
import { blocksBackward, blocksForward } from './line-blocks.ts'
import type { Block, Source } from './line-blocks.ts'
import type { SeqIndex } from './seq-index.ts'
import { createTextSearch } from '../../shared/text-search.ts'

/** A log up to its durable end at one moment: later appends change nothing for its readers. */
export type Snapshot = {
  readonly source: Source
  readonly index: SeqIndex
  readonly head: number
  readonly end: number
}

/**
 * The maximum that one call scans or returns, whether filtered or with huge events: it bounds memory and time. One
 * event is always returned, whatever its size.
 */
const MAX_READ_BYTES = 16 * 1024 * 1024

export async function readPage(log: Snapshot, options: ReadOptions): Promise<LogPage> {
  const { afterSeq = 0, beforeSeq = Infinity, order = 'asc', limit, maxBytes = MAX_READ_BYTES, ...filter } = options
  const range = { first: afterSeq + 1, last: Math.min(beforeSeq - 1, log.head), order, ...timesOf(filter) }
  const matches = createMatch(filter)
  const events: StoredEvent[] = []
  let bytes = 0
  let scannedTo: number | undefined
  if (limit < 1) return { events, scannedTo: undefined }
  await scan(log, range, (line) => {
    const storedEvent = matches(line)
    if (storedEvent) events.push(storedEvent)
    bytes += line.end - line.start
    if (events.length < limit && bytes < maxBytes) return true
    scannedTo = line.seq
    // The next page continues here and must not have to search for it.
    if (order === 'asc') log.index.learn(line.seq + 1, line.block.offset + line.end + 1)
    return false
  })
  const isExhausted = scannedTo === (order === 'asc' ? range.last : range.first)
  return { events, scannedTo: isExhausted ? undefined : scannedTo }
}

export async function countEvents(log: Snapshot, filter: EventFilter): Promise<number> {
  const hasFields = createFieldsMatch(filter)
  const hasText = filter.q === undefined ? undefined : createTextSearch(filter.q)
  let count = 0
  await scan(log, { first: 1, last: log.head, order: 'asc', ...timesOf(filter) }, (line) => {
    if (hasFields(line) && (!hasText || hasText(line.stored()))) count += 1
    return true
  })
  return count
}

/** An event's id contains the millisecond of its timestamp, by which the log is sorted: only that one is searched. */
export async function findEvent(log: Snapshot, eventId: string): Promise<StoredEvent | undefined> {
  const time = uuid7Time(eventId)
  if (time === undefined) return undefined
  let foundEvent: StoredEvent | undefined
  const range = { first: 1, last: log.head, order: 'asc' as const, since: time, until: time + 1 }
  await scan(log, range, (line) => {
    if (line.header.id === eventId) foundEvent = line.stored()
    return foundEvent === undefined
  })
  return foundEvent
}

type Range = { first: number; last: number; order: 'asc' | 'desc'; since: number; until: number }

/** A line in its block. Fields are read on demand: most lines of a long log are skipped. */
class Line implements LineGlance {
  readonly block: Block
  readonly start: number
  readonly end: number
  readonly seq: number
  readonly typeAt: number

  constructor(block: Block, i: number, { seq, typeAt }: LineGlance) {
    this.block = block
    this.start = block.starts[i]!
    this.end = block.ends[i]!
    this.seq = seq
    this.typeAt = typeAt
  }

  get header(): EventHeader {
    const header = readHeader(this.block.bytes, this.start, this.end)
    if (!header) throw damagedAt(this.seq, NO_EVENT)
    return header
  }

  stored(): StoredEvent {
    return storedFromLine(this.header, this.block.bytes, this.start, this.end)
  }
}

/** Visits the lines of the range until `visit` returns false. Throws `conversation_damaged` at an invalid line. */
async function scan(log: Snapshot, range: Range, visit: (line: Line) => boolean): Promise<void> {
  const { first, last, order, since, until } = range
  if (first > last || since >= until) return
  const isAscending = order === 'asc'
  const blocks = isAscending
    ? blocksForward(log.source, await startOf(log, range), log.end)
    : blocksBackward(log.source, 0, await endOf(log, range))
  let previous: number | undefined
  for await (const block of blocks) {
    const count = block.starts.length
    for (let n = 0; n < count; n++) {
      const i = isAscending ? n : count - 1 - n
      const line = lineOf(block, i, previous === undefined ? undefined : previous + (isAscending ? 1 : -1))
      const { seq } = line
      previous = seq
      if (i === 0) log.index.learn(seq, block.offset)
      if (isAscending ? seq > last : seq < first) return
      if (isAscending ? seq < first : seq > last) continue
      const time = since === -Infinity && until === Infinity ? 0 : Date.parse(line.header.timestamp)
      if (isAscending ? time >= until : time < since) return
      if (isAscending ? time < since : time >= until) continue
      if (!visit(line)) return
    }
  }
  // The scan reached the end or the beginning of the file: it must have seen all lines up to there.
  if (isAscending && previous !== log.head) throw damagedAt((previous ?? 0) + 1, 'is missing')
  if (!isAscending && previous !== undefined && previous > 1) throw damagedAt(previous - 1, 'is missing')
}

/** Returns the offset of a line at or before the first of the range. */
async function startOf(log: Snapshot, { first, since }: Range): Promise<number> {
  const end = { head: log.head, offset: log.end }
  const bySeq = first === 1 ? 0 : await log.index.seekSeq(log.source, first, end)
  if (since === -Infinity) return bySeq
  return Math.max(bySeq, await log.index.seekTime(log.source, since, end))
}

/** Returns the end of a line at or after the last of the range. */
async function endOf(log: Snapshot, { last, until }: Range): Promise<number> {
  const end = { head: log.head, offset: log.end }
  const ends = [log.end]
  if (last < log.head) {
    const near = await log.index.seekSeq(log.source, last + 1, end)
    ends.push(await startOfFirst(log, near, ({ seq }) => seq > last))
  }
  if (until !== Infinity) {
    const near = await log.index.seekTime(log.source, until, end)
    ends.push(await startOfFirst(log, near, ({ header }) => Date.parse(header.timestamp) >= until))
  }
  return Math.min(...ends)
}

async function startOfFirst(log: Snapshot, from: number, isIt: (line: Line) => boolean): Promise<number> {
  for await (const block of blocksForward(log.source, from, log.end)) {
    const i = block.starts.findIndex((_, i) => isIt(lineOf(block, i, undefined)))
    if (i !== -1) return block.offset + block.starts[i]!
  }
  return log.end
}

const NO_EVENT = 'is not an event, or not the one that belongs there'

function lineOf(block: Block, i: number, expectedSeq: number | undefined): Line {
  const seenLine = glance(block.bytes, block.starts[i]!)
  const isSound = seenLine && endsWhole(block.bytes, block.ends[i]!)
  if (isSound && (expectedSeq === undefined || seenLine.seq === expectedSeq)) return new Line(block, i, seenLine)
  throw damagedAt(expectedSeq ?? seenLine?.seq ?? 0, NO_EVENT)
}

/** Returns the event of a line if it matches the filter. */
function createMatch(filter: EventFilter): (line: Line) => StoredEvent | undefined {
  const hasFields = createFieldsMatch(filter)
  const hasText = filter.q === undefined ? undefined : createTextSearch(filter.q)
  return (line) => {
    if (!hasFields(line)) return undefined
    const storedEvent = line.stored()
    return !hasText || hasText(storedEvent) ? storedEvent : undefined
  }
}

function createFieldsMatch({ types, source }: EventFilter): (line: Line) => boolean {
  const hasType = types && createTypeMatch(types)
  return (line) => (!hasType || hasType(line)) && (source === undefined || line.header.source === source)
}

/** What an event of an earlier version becomes depends on its content: it is parsed. */
function createTypeMatch(types: ReadonlySet<string>): (line: Line) => boolean {
  const earlier = earlierTypes(types)
  const hasType = matchTypes(types)
  if (earlier.size === 0) return (line) => hasType(line.block.bytes, line)
  const wasType = matchTypes(earlier)
  return (line) => hasType(line.block.bytes, line) || (wasType(line.block.bytes, line) && types.has(line.stored().type))
}

function timesOf({ since, until }: EventFilter): { since: number; until: number } {
  return {
    since: since === undefined ? -Infinity : Date.parse(since),
    until: until === undefined ? Infinity : Date.parse(until),
  }
}
