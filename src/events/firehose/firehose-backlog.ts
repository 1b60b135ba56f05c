/** Reads the backlog of the firehose: its order says which events, the logs have them. */
import { Problem } from '../../contract/problem.ts'
import type { LogPage, LogViews, ReadOptions, StoredEvent } from '../event-store.ts'
import type { FirehoseOrder, OrderedEvent } from './firehose-order.ts'
import type { FirehoseEvent } from './firehose-record.ts'
import { firehoseEvent } from './firehose-record.ts'
import { withoutUndefined } from '../../lib/without-undefined.ts'

export type Backlog = {
  readonly order: FirehoseOrder
  readonly store: LogViews
  /** The last position that may be published. */
  readonly head: number
  readonly onFault: (error: unknown, conversationId?: string) => void
}

/** The events read of one conversation: those up to `scannedTo` that match the filter and still exist. */
type Part = { readonly events: ReadonlyMap<number, StoredEvent>; readonly scannedTo: number }

/** Room for at least one event: a page is never empty because of its byte limit. */
const DEFAULT_BYTES = 16 * 1024 * 1024

/** Returns a page as a log would. Skips events of conversations that are deleted or unreadable. */
export async function readBacklog(backlog: Backlog, options: ReadOptions): Promise<LogPage> {
  const { afterSeq = 0, beforeSeq = Infinity, limit } = options
  const last = Math.min(beforeSeq - 1, backlog.head)
  const count = Math.min(limit, last - afterSeq)
  const foundEvents = last > afterSeq ? await backlog.order.read(afterSeq, count) : []
  const inRange = foundEvents.filter((record) => record.position <= last)
  const records = ascending(inRange)
  const parts = await readParts(backlog, records, options)
  const events: FirehoseEvent[] = []
  let position = afterSeq
  for (const record of records) {
    const part = parts.get(record.conversationId)
    if (!part || record.seq > part.scannedTo) break
    position = record.position
    const storedEvent = part.events.get(record.seq)
    if (storedEvent) events.push(firehoseEvent(position, backlog.order.epoch, storedEvent))
  }
  // Positions need not be consecutive: after the last event up to `last`, there is nothing more to read.
  const isWhole = position === (inRange.at(-1)?.position ?? afterSeq)
  if (isWhole && (foundEvents.length < count || inRange.length < foundEvents.length)) position = last
  // The reader would request the same page forever.
  if (position === afterSeq && afterSeq < last && limit > 0) throw cannotAdvance(afterSeq)
  return { events, scannedTo: position < last ? position : undefined }
}

/**
 * Returns the records up to the first that goes back within its conversation: after a log was restored from an older
 * copy, some of its seqs occur again. A log is read from a page's first seq on, so they belong on a separate page.
 */
function ascending(records: readonly OrderedEvent[]): readonly OrderedEvent[] {
  const heads = new Map<string, number>()
  for (const [i, { conversationId, seq }] of records.entries()) {
    if (seq <= (heads.get(conversationId) ?? 0)) return records.slice(0, i)
    heads.set(conversationId, seq)
  }
  return records
}

/** Reads conversation by conversation, in order of occurrence, as far as the byte limit allows. */
async function readParts(
  backlog: Backlog,
  records: readonly OrderedEvent[],
  { types, maxBytes = DEFAULT_BYTES }: ReadOptions,
): Promise<Map<string, Part>> {
  const parts = new Map<string, Part>()
  let bytes = 0
  for (const [id, own] of Map.groupBy(records, ({ conversationId }) => conversationId)) {
    if (bytes >= maxBytes) break
    const [first = 0, last = first] = [own[0]?.seq, own.at(-1)?.seq]
    const range = { afterSeq: first - 1, beforeSeq: last + 1, limit: last - first + 1 }
    const page = await readOne(backlog, id, { ...range, maxBytes: maxBytes - bytes, ...withoutUndefined({ types }) })
    parts.set(id, {
      events: new Map(page.events.map((storedEvent) => [storedEvent.seq, storedEvent])),
      scannedTo: page.scannedTo ?? Infinity,
    })
    bytes += page.events.reduce((sum, { json }) => sum + json.length, 0)
  }
  return parts
}

async function readOne({ order, store, onFault }: Backlog, id: string, options: ReadOptions): Promise<LogPage> {
  for (let tries = 1; ; tries++) {
    try {
      await using view = await (order.logs ?? store).view(id)
      return await view.read(options)
    } catch (error) {
      const code = error instanceof Problem ? error.code : undefined
      if (code === 'conversation_not_found' || code === 'conversation_deleted') return NOTHING
      if (code === 'conversation_damaged') {
        onFault(error, id)
        return NOTHING
      }
      // Its writer closed during the read. A later view reads the file, or a writer that was opened meanwhile.
      if (code !== 'unavailable' || tries === MAX_TRIES) throw error
    }
  }
}

const NOTHING: LogPage = { events: [], scannedTo: undefined }
/** Each try means that the conversation was closed once more. */
const MAX_TRIES = 20

const cannotAdvance = (position: number) =>
  new Problem('storage_failed', `The index of the firehose cannot be read after position ${position}.`)
