/**
 * One event as one line of a log. The only file that defines the format.
 *
 *     {"seq":7,"type":"ToolUse","id":"…","timestamp":"…","source":"agent","version":1,"conversation_id":"…",…fields}
 *
 * The fields up to `source` are always first and in this order, so that filters, cursors and lookups read only
 * the first bytes of a line, without parsing the rest, which may be megabytes of tool output.
 *
 * A line ends in LF. A space before the LF means "written together with the next line": events that were written to
 * disk in one write are valid only together. White space after a JSON value has no meaning in JSON, so each line is still
 * exactly one JSON event to any tool, and no client ever sees a field that only the disk needs.
 */
import type { EventHeader } from '../../../events/event-header.ts'
import { HEADER_CHARS, parseHeader } from '../../../events/event-header.ts'
import type { StoredEvent } from '../../../events/event-store.ts'
import { storedFromText } from '../../shared/stored-event.ts'

/**
 * The fields that are read from most lines, at a tenth of the cost of `readHeader`; `typeAt` is the offset of the type.
 */
export type LineGlance = { readonly seq: number; readonly typeAt: number }

export const LF = 10
const SPACE = 32
const CLOSING_BRACE = 125

/** Returns the text of lines that are written together. */
export function textOfWrite(lines: readonly string[]): string {
  return `${lines.join(' \n')}\n`
}

/** Parses the header of the line at `start` of `bytes`; returns undefined if it is not an event line. */
export function readHeader(bytes: Buffer, start: number, end: number): EventHeader | undefined {
  return parseHeader(bytes.toString('latin1', start, Math.min(end, start + HEADER_CHARS)))
}

const BEFORE_SEQ = Buffer.from('{"seq":')
const BEFORE_TYPE = Buffer.from(',"type":"')

/** Returns undefined if no event line begins at `start`. */
export function glance(bytes: Buffer, start: number): LineGlance | undefined {
  if (!standsAt(bytes, start, BEFORE_SEQ)) return undefined
  let at = start + BEFORE_SEQ.length
  let seq = 0
  // oxlint-disable-next-line typescript/no-non-null-assertion -- past the end it is NaN, which is not a digit
  for (let digit = bytes[at]! - 48; digit >= 0 && digit <= 9; digit = bytes[++at]! - 48) seq = seq * 10 + digit
  return seq > 0 && standsAt(bytes, at, BEFORE_TYPE) ? { seq, typeAt: at + BEFORE_TYPE.length } : undefined
}

/** Returns a function that checks the bytes of a line for one of these types. */
export function matchTypes(types: ReadonlySet<string>): (bytes: Buffer, line: LineGlance) => boolean {
  const wantedTypes = Array.from(types, (type) => Buffer.from(`${type}"`))
  return (bytes, { typeAt }) => {
    for (const type of wantedTypes) if (bytes[typeAt] === type[0] && standsAt(bytes, typeAt, type)) return true
    return false
  }
}

/**
 * Written in JavaScript: most comparisons end at the first byte, and a call into the runtime costs more than the others
 * take.
 */
function standsAt(bytes: Buffer, at: number, wantedBytes: Buffer): boolean {
  for (let i = 0; i < wantedBytes.length; i++) if (bytes[at + i] !== wantedBytes[i]) return false
  return true
}

/** True if the line was written together with the next one. `end` is the offset of its LF. */
export function isJoined(bytes: Buffer, end: number): boolean {
  return bytes[end - 1] === SPACE
}

/** True if the line ends as an event does: a cheap check that it is complete. */
export function endsWhole(bytes: Buffer, end: number): boolean {
  return bytes[isJoined(bytes, end) ? end - 2 : end - 1] === CLOSING_BRACE
}

/** Returns the header of a line after a full parse, which proves that all of it is valid. */
export function verifyLine(bytes: Buffer, start: number, end: number): EventHeader | undefined {
  const header = readHeader(bytes, start, end)
  if (!header || !endsWhole(bytes, end)) return undefined
  try {
    JSON.parse(bytes.toString('utf8', start, end))
    return header
  } catch {
    // The line is torn, which is what the caller checks.
    return undefined
  }
}

/** Events of earlier versions are read as those of this one. */
export const storedFromLine = (header: EventHeader, bytes: Buffer, start: number, end: number): StoredEvent =>
  storedFromText(header, bytes.toString('utf8', start, isJoined(bytes, end) ? end - 1 : end))
