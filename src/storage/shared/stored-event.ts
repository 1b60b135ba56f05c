/** The JSON of stored events: how a draft becomes an event, and how its text is read. Every storage keeps the same text. */
import type { Event, EventDraft } from '../../contract/events/event.ts'
import { versionOf } from '../../contract/events/event.ts'
import { Problem } from '../../contract/problem.ts'
import { currentEvent, isEarlier } from '../../events/earlier-events.ts'
import type { StoredEvent } from '../../events/event-store.ts'
import { ComplexJson, parseUntrustedJson } from '../../lib/json/untrusted-json.ts'
import { uuid7 } from '../../lib/uuid7.ts'

/**
 * Returns the line without its beginning, which needs the seq: see `storedFromDraft`. Throws if JSON cannot express the
 * draft.
 */
export function serialiseDraft(draft: EventDraft, at: { ms: number; conversationId: string }): LineWithoutSeq {
  const { type, source, ...fields } = draft
  const json = JSON.stringify({
    type,
    id: uuid7(at.ms),
    timestamp: new Date(at.ms).toISOString(),
    source,
    version: versionOf(draft),
    conversation_id: at.conversationId,
    ...fields,
  })
  return { type, json }
}

/**
 * Returns the line of an event copied from another log: unchanged except for the conversation and the id, which is a
 * new one with the same time.
 */
export function serialiseCopy(event: Event, conversationId: string): string {
  const { seq, type, id: _, timestamp, source, version, conversation_id: __, ...fields } = event
  const id = uuid7(Date.parse(timestamp))
  return JSON.stringify({ seq, type, id, timestamp, source, version, conversation_id: conversationId, ...fields })
}

export type LineWithoutSeq = { readonly type: string; readonly json: string }

export function storedFromDraft(seq: number, line: LineWithoutSeq): StoredEvent {
  return new StoredLine(seq, line.type, `{"seq":${seq},${line.json.slice(1)}`)
}

/** Events of earlier versions are read as those of this one. `type`: as stored. */
export function storedFromText({ seq, type }: { seq: number; type: string }, json: string): StoredEvent {
  if (!isEarlier(type)) return new StoredLine(seq, type, json)
  const event = currentOf(seq, parse(seq, json))
  return new StoredLine(seq, String(event['type']), JSON.stringify(event))
}

function currentOf(seq: number, event: Event): Readonly<Record<string, unknown>> {
  try {
    return currentEvent({ ...event })
  } catch (cause) {
    throw damagedAt(seq, 'is not an event of an earlier version', cause)
  }
}

class StoredLine implements StoredEvent {
  readonly seq: number
  readonly type: string
  readonly json: string
  #event: Event | undefined

  constructor(seq: number, type: string, json: string) {
    this.seq = seq
    this.type = type
    this.json = json
  }

  get event(): Event {
    this.#event ??= parse(this.seq, this.json)
    return this.#event
  }
}

/**
 * Far more than this version accepts, and less than the stack allows: an event is searched, hashed and written again.
 */
const STORED_JSON = { depth: 3000, values: Infinity }

function parse(seq: number, json: string): Event {
  try {
    // The schema does not validate it: a log also holds types and versions that this server doesn't know yet.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only this server writes the log
    return parseUntrustedJson(json, STORED_JSON) as Event
  } catch (cause) {
    if (cause instanceof ComplexJson) throw damagedAt(seq, cause.message, cause)
    throw damagedAt(seq, 'is not valid JSON', cause)
  }
}

/** One event per line, from seq 1 without gaps: the seq is also the line number. */
export function damagedAt(seq: number, what: string, cause?: unknown): Problem {
  return new Problem(
    'conversation_damaged',
    `The event log of this conversation is damaged: line ${seq} ${what}. Restore events.jsonl from a backup.`,
    { details: { line: seq }, cause },
  )
}
