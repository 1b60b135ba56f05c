/** The fields that stand first in the JSON of every stored event, whatever stores it: read without parsing the rest, which may be megabytes. */
import type { StoredEvent } from './event-store.ts'

export type EventHeader = { seq: number; type: string; id: string; timestamp: string; source: string }

/** No header is longer: 16 digits of seq, 36 + 24 characters of id and timestamp, and room for the names. */
export const HEADER_CHARS = 320
const HEADER =
  /^\{"seq":([1-9]\d{0,15}),"type":"([^"\\]+)","id":"([^"\\]+)","timestamp":"([^"\\]+)","source":"([^"\\]+)",/

/** The header of a stored event, without parsing it. */
export function headerOf({ seq, json }: StoredEvent): EventHeader {
  const header = parseHeader(json.slice(0, HEADER_CHARS))
  if (!header) throw new Error(`Event ${seq} was stored without its header.`)
  return header
}

export function parseHeader(beginning: string): EventHeader | undefined {
  const match = HEADER.exec(beginning)
  if (!match) return undefined
  const [, seq, type = '', id = '', timestamp = '', source = ''] = match
  return { seq: Number(seq), type, id, timestamp, source }
}
