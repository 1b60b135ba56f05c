/**
 * Reads the first fields of a stored event's JSON, which are the same in every store, without parsing the rest, which
 * may be megabytes.
 */
import type { StoredEvent } from './event-store.ts'

export type EventHeader = { seq: number; type: string; id: string; timestamp: string; source: string }

/** Maximum length of a header: 16 digits of seq, 36 + 24 characters of id and timestamp, and room for the names. */
export const HEADER_CHARS = 320
const HEADER =
  /^\{"seq":([1-9]\d{0,15}),"type":"([^"\\]+)","id":"([^"\\]+)","timestamp":"([^"\\]+)","source":"([^"\\]+)",/

/** Returns the header of a stored event without parsing it. */
export function headerOf({ seq, json }: StoredEvent): EventHeader {
  const header = parseHeader(json.slice(0, HEADER_CHARS))
  if (!header) throw new Error(`Event ${seq} was stored without its header.`)
  return header
}

/** Enough for the header, the version, and the id of the conversation. */
const MARK_CHARS = HEADER_CHARS + 200
const MARK = /^[^{]*"version":\d{1,9},"conversation_id":"[^"\\]{1,100}","parent_tool_use_id":"/

/**
 * Returns true if a subagent has stored this event, without parsing it. The mark of such an event follows the id of the
 * conversation; an event that has it elsewhere is not recognised.
 */
export function isMarkedAsSubagents({ json }: StoredEvent): boolean {
  return MARK.test(json.slice(1, MARK_CHARS))
}

export function parseHeader(beginning: string): EventHeader | undefined {
  const match = HEADER.exec(beginning)
  if (!match) return undefined
  const [, seq, type = '', id = '', timestamp = '', source = ''] = match
  return { seq: Number(seq), type, id, timestamp, source }
}
