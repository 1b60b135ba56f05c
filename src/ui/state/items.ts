/** The rows of a conversation: events, with a call and its result in one row. Knows nothing of the page. */
import type { Event, EventOf } from '../../contract/events/event.ts'
import type { TransientEvent } from '../../contract/events/transient-event.ts'

export type Call = {
  readonly kind: 'call'
  readonly key: string
  readonly seq: number
  readonly use: EventOf<'ToolUse'>
  readonly result?: EventOf<'ToolResult'> | undefined
}
export type RequestItem = {
  readonly kind: 'request'
  readonly key: string
  readonly seq: number
  readonly request: EventOf<'RequestOpened'>
  readonly end?: EventOf<'RequestAnswered'> | EventOf<'RequestClosed'> | undefined
}
export type EventItem = {
  readonly kind: 'event'
  readonly key: string
  readonly seq: number
  readonly event: Event
}
export type ChatRow = Call | RequestItem | EventItem

/** Types with a row. The others change a row, or say nothing that a person waits for. */
const ROWS: ReadonlySet<Event['type']> = new Set([
  'UserMessage',
  'AssistantMessage',
  'ErrorEvent',
  'Result',
  'ModelRetry',
  'Condensation',
  'Rewound',
  'ForkedFrom',
  'CommandResult',
  'FileUpdate',
  'SubagentStart',
  'MessageWithdrawn',
  'ConfigUpdate',
  'StatusUpdate',
])

/** The reasons of a status that a person reads; others follow from the rows around them. */
const SHOWN_REASONS: ReadonlySet<string> = new Set(['queued', 'server_restart', 'owner_lost', 'paused', 'cancelled'])

type Ending = EventOf<'ToolResult'> | EventOf<'RequestAnswered'> | EventOf<'RequestClosed'>

/** Rows in the order of their events. Each change makes a new array, so that a reader sees it. */
export class Items {
  #rows: readonly ChatRow[] = []
  /** What ends calls and requests of older pages, by key. */
  readonly #ends = new Map<string, Ending>()

  get rows(): readonly ChatRow[] {
    return this.#rows
  }

  /** Adds events of higher seqs than all before, in order. */
  append(events: readonly Event[]): void {
    this.#rows = this.#with([...this.#rows], events)
  }

  /** Adds events of lower seqs than all before, in order. */
  prepend(events: readonly Event[]): void {
    const older = this.#with([], events).map((row) => this.#ended(row))
    this.#rows = [...older, ...this.#rows]
  }

  /** Forgets the oldest rows above so many. Returns whether there were some. */
  trim(most: number): boolean {
    if (this.#rows.length <= most) return false
    const forgottenRows = this.#rows.slice(0, -most)
    this.#rows = this.#rows.slice(-most)
    const firstSeq = this.#rows[0]?.seq ?? 0
    // Pages before the first row are read again: with the ends that they have, and without those that came later.
    for (const [key, { seq }] of this.#ends) if (seq < firstSeq) this.#ends.delete(key)
    for (const row of forgottenRows) {
      const end = endOf(row)
      if (end && end.seq >= firstSeq) this.#ends.set(row.key, end)
    }
    return true
  }

  #with(rows: ChatRow[], events: readonly Event[]): ChatRow[] {
    for (const event of events) {
      const row = rowOf(event)
      if (row) rows.push(row)
      const key = endedBy(event)
      if (key === undefined) continue
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only such events end a row
      this.#ends.set(key, event as Ending)
      const index = rows.findLastIndex((other) => other.kind !== 'event' && other.key === key)
      const endedRow = rows[index]
      if (endedRow) rows[index] = this.#ended(endedRow)
    }
    return rows
  }

  /** A permission request can have several answers: the last one is shown. */
  #ended(row: ChatRow): ChatRow {
    const end = this.#ends.get(row.key)
    if (!end || row.kind === 'event') return row
    this.#ends.delete(row.key)
    if (row.kind === 'call') return end.type === 'ToolResult' ? { ...row, result: end } : row
    return end.type === 'ToolResult' ? row : { ...row, end }
  }
}

function rowOf(event: Event): ChatRow | undefined {
  const { seq } = event
  if (event.type === 'ToolUse') return { kind: 'call', key: event.tool_use_id, seq, use: event }
  if (event.type === 'RequestOpened') return { kind: 'request', key: event.request_id, seq, request: event }
  return isShown(event) ? { kind: 'event', key: event.id, seq, event } : undefined
}

function endedBy(event: Event): string | undefined {
  if (event.type === 'ToolResult') return event.tool_use_id
  return event.type === 'RequestAnswered' || event.type === 'RequestClosed' ? event.request_id : undefined
}

function endOf(row: ChatRow): Ending | undefined {
  if (row.kind === 'event') return undefined
  return row.kind === 'call' ? row.result : row.end
}

function isShown(event: Event): boolean {
  if (!ROWS.has(event.type)) return false
  return event.type !== 'StatusUpdate' || SHOWN_REASONS.has(event.reason)
}

/** An answer of a model that only made calls: it took time, and says nothing. */
export const isSilent = (row: ChatRow): boolean =>
  row.kind === 'event' &&
  row.event.type === 'AssistantMessage' &&
  row.event.text === '' &&
  row.event.content.length === 0

/** Text of an answer that is being written, and output of calls that run. */
export class Live {
  messageId: string | undefined
  text = ''
  reasoning = ''
  readonly outputs = new Map<string, string>()

  take(event: TransientEvent): void {
    if (event.type === 'AssistantAborted') return this.endMessage(event.message_id)
    if (event.type === 'ToolOutputDelta') {
      const id = event.tool_use_id
      // The outputs of commands of people have no row.
      if (id === undefined) return
      this.outputs.set(id, `${this.outputs.get(id) ?? ''}${event.text}`.slice(-MAX_OUTPUT_CHARS))
      return
    }
    if (event.parent_tool_use_id !== undefined) return
    if (event.message_id !== this.messageId) this.#begin(event.message_id)
    this.text += event.text_delta ?? ''
    this.reasoning += event.reasoning_delta ?? ''
  }

  /** The stored message has it all. */
  endMessage(id: string): void {
    if (id === this.messageId) this.#begin(undefined)
  }

  #begin(id: string | undefined): void {
    this.messageId = id
    this.text = ''
    this.reasoning = ''
  }
}

/** What is kept of the output of a call that runs; the stored result has what the server keeps. */
const MAX_OUTPUT_CHARS = 20_000
