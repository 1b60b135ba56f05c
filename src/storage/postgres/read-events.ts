/** Reads the events of one conversation: pages, counts and look-ups, up to a head. */
import { parseHeader, HEADER_CHARS } from '../../events/event-header.ts'
import { earlierTypes } from '../../events/earlier-events.ts'
import type { EventFilter, LogPage, ReadOptions, StoredEvent } from '../../events/event-store.ts'
import { uuid7Time } from '../../lib/uuid7.ts'
import { damagedAt, storedFromText } from '../shared/stored-event.ts'
import { createTextSearch } from '../shared/text-search.ts'
import type { PostgresDatabase } from './database.ts'
import type { PostgresRow } from './session.ts'

/** A log up to its head at one moment. */
export type LogExtent = { readonly database: PostgresDatabase; readonly id: string; readonly head: number }

/** The limit of files, too: bounds memory and time of one call. One event is always returned, whatever its size. */
const MAX_READ_BYTES = 16 * 1024 * 1024

/** Events that a search reads at a time. */
const SEARCH_ROWS = 500

/** Seqs, both inclusive. */
type Range = { readonly first: number; readonly last: number }

export async function readPage(log: LogExtent, options: ReadOptions): Promise<LogPage> {
  const { limit, maxBytes = MAX_READ_BYTES, order = 'asc' } = options
  const range = await rangeOf(log, options)
  if (limit < 1 || range.first > range.last) return { events: [], scannedTo: undefined }
  const matches = createMatch(options)
  const events: StoredEvent[] = []
  let bytes = 0
  // What does not match is scanned as well: several statements may be needed.
  for (let remainingRange: Range | undefined = range; remainingRange;) {
    const rows: RowsRead = await readRows(log, remainingRange, {
      ...options,
      order,
      limit: matches ? SEARCH_ROWS : limit,
      maxBytes: maxBytes - bytes,
    })
    if (isWithoutFilter(options)) requireDense(remainingRange, rows, order)
    let last: number | undefined
    for (const row of rows.events) {
      last = Number(row['seq'])
      bytes += Number(row['bytes'])
      const storedEvent = storedOf(row)
      if (!matches || matches(storedEvent)) events.push(storedEvent)
      if (events.length >= limit || bytes >= maxBytes) {
        const isLast = !rows.hasMore && row === rows.events.at(-1)
        return { events, scannedTo: isLast ? undefined : last }
      }
    }
    remainingRange = rows.hasMore && last !== undefined ? after(remainingRange, last, order) : undefined
  }
  return { events, scannedTo: undefined }
}

export async function countEvents(log: LogExtent, filter: EventFilter): Promise<number> {
  const range = await rangeOf(log, filter)
  if (filter.q !== undefined) return await countMatches(log, range, filter, filter.types && storedTypes(filter.types))
  const [foundRow] = await log.database.read(COUNT, [
    log.id,
    range.first,
    range.last,
    filter.types && [...filter.types],
    filter.source,
  ])
  const count = Number(foundRow?.['count'])
  const earlier = filter.types ? [...earlierTypes(filter.types)] : []
  // What an event of an earlier version becomes depends on its content.
  return earlier.length === 0 ? count : count + (await countMatches(log, range, filter, earlier))
}

/** An event's id contains the millisecond of its time, by which the log is sorted: only that one is searched. */
export async function findEvent(log: LogExtent, eventId: string): Promise<StoredEvent | undefined> {
  const time = uuid7Time(eventId)
  if (time === undefined) return undefined
  const rows = await log.database.read(FIND, [log.id, log.head, time])
  for (const row of rows) {
    if (parseHeader(String(row['beginning']))?.id !== eventId) continue
    const [foundRow] = await log.database.read(GET, [log.id, row['seq']])
    return foundRow && storedOf(foundRow)
  }
  return undefined
}

type RowsRead = { readonly events: readonly PostgresRow[]; readonly hasMore: boolean }
type RowsOptions = EventFilter & { readonly order: 'asc' | 'desc'; readonly limit: number; readonly maxBytes: number }

/**
 * Reads rows as they are stored. Reads one event more than it returns, to know whether there is one; its text is not
 * read.
 */
export async function readRows({ database, id }: LogExtent, range: Range, options: RowsOptions): Promise<RowsRead> {
  const { types, source, order, limit, maxBytes } = options
  const values = [
    id,
    range.first,
    range.last,
    types && storedTypes(types),
    source,
    limit + 1,
    limit,
    Math.max(maxBytes, 1),
  ]
  const rows = await database.read(
    order === 'asc' ? PAGE : PAGE.replaceAll('order by seq', 'order by seq desc'),
    values,
  )
  const events = rows.filter((row) => row['json'] !== null)
  return { events, hasMore: events.length < rows.length }
}

async function countMatches(
  log: LogExtent,
  range: Range,
  filter: EventFilter,
  types: string[] | undefined,
): Promise<number> {
  const matches = createMatch(filter)
  let count = 0
  for (let remainingRange: Range | undefined = range; remainingRange && remainingRange.first <= remainingRange.last;) {
    const namedTypes = types && new Set(types)
    const rows: RowsRead = await readRows(log, remainingRange, {
      ...filter,
      ...(namedTypes && { types: namedTypes }),
      order: 'asc',
      limit: SEARCH_ROWS,
      maxBytes: MAX_READ_BYTES,
    })
    count += rows.events.filter((row) => !matches || matches(storedOf(row))).length
    remainingRange = rows.hasMore ? after(remainingRange, Number(rows.events.at(-1)?.['seq']), 'asc') : undefined
  }
  return count
}

/** Returns what the statement does not check; undefined if it checks everything. */
function createMatch({ types, q }: EventFilter): ((stored: StoredEvent) => boolean) | undefined {
  const hasEarlier = types !== undefined && earlierTypes(types).size > 0
  const hasText = q === undefined ? undefined : createTextSearch(q)
  if (!hasEarlier && !hasText) return undefined
  return (storedEvent) => (!types || types.has(storedEvent.type)) && (!hasText || hasText(storedEvent))
}

const storedTypes = (types: ReadonlySet<string>): string[] => [...types, ...earlierTypes(types)]

const after = ({ first, last }: Range, seq: number, order: 'asc' | 'desc'): Range =>
  order === 'asc' ? { first: seq + 1, last } : { first, last: seq - 1 }

async function rangeOf(
  { database, id, head }: LogExtent,
  { afterSeq = 0, beforeSeq = Infinity, since, until }: EventFilter & Partial<ReadOptions>,
): Promise<Range> {
  const range = { first: Math.max(afterSeq, 0) + 1, last: Math.min(beforeSeq - 1, head) }
  if (since === undefined && until === undefined) return range
  const [foundRow] = await database.read(TIMES, [id, head, since && Date.parse(since), until && Date.parse(until)])
  return {
    first: Math.max(range.first, Number(foundRow?.['first'] ?? 1)),
    last: Math.min(range.last, Number(foundRow?.['last'] ?? head)),
  }
}

const isWithoutFilter = ({ types, source }: EventFilter): boolean => types === undefined && source === undefined

/** Throws `conversation_damaged` if an event of the range is missing. */
function requireDense({ first, last }: Range, { events, hasMore }: RowsRead, order: 'asc' | 'desc'): void {
  const step = order === 'asc' ? 1 : -1
  let expectedSeq = order === 'asc' ? first : last
  for (const { seq } of events) {
    if (seq !== expectedSeq) throw damagedAt(expectedSeq, 'is missing')
    expectedSeq += step
  }
  if (!hasMore && expectedSeq !== (order === 'asc' ? last + 1 : first - 1)) throw damagedAt(expectedSeq, 'is missing')
}

const storedOf = (row: PostgresRow): StoredEvent =>
  storedFromText({ seq: Number(row['seq']), type: String(row['type']) }, String(row['json']))

const RANGE = 'conversation_id = $1 and seq between $2 and $3'
const FILTER = '($4::text[] is null or type = any($4)) and ($5::text is null or source = $5)'

// The sizes before an event are known without reading any text. Null stands for the text of an event that is not returned.
const PAGE = `
  select seq, type, bytes, case when n <= $7::bigint and before < $8::bigint then json end as json
  from (
    select seq, type, json, octet_length(json)::bigint as bytes, row_number() over (order by seq) as n,
      sum(octet_length(json)) over (order by seq) - octet_length(json) as before
    from (select seq, type, json from events where ${RANGE} and ${FILTER} order by seq limit $6) matching
  ) sized
  order by seq`
const COUNT = `select count(*) as count from events where ${RANGE} and ${FILTER}`
const GET = 'select seq, type, json from events where conversation_id = $1 and seq = $2'
const FIND = `
  select seq, left(json, ${HEADER_CHARS}) as beginning from events
  where conversation_id = $1 and seq >= first_seq_at($1, $2, $3) and seq < first_seq_at($1, $2, $3 + 1)
  order by seq`
const TIMES = `
  select case when $3::bigint is not null then first_seq_at($1, $2, $3) end as first,
    case when $4::bigint is not null then first_seq_at($1, $2, $4) - 1 end as last`
