/**
 * Makes the values by which calls and results are compared. Every call has a print, which costs less than a
 * microsecond; hashes are for what failed or may be a repetition, because to hash a long output takes a hundred times
 * as long.
 */
import { hash } from 'node:crypto'
import type { EventOf } from '../../contract/events/event.ts'
import { canonicalJson } from '../../lib/json/canonical-json.ts'
import type { ToolCall } from '../tool-call.ts'

type Call = Pick<ToolCall, 'name' | 'input'>
type Output = Pick<EventOf<'ToolResult'>, 'output' | 'error_type' | 'error_message' | 'truncated'>

/** Characters of a hash. Short, because every conversation keeps a few of them. */
const HASH_LENGTH = 16

/** The ends of a string alone count for a print, if it is longer than both together. */
const PRINTED_HEAD = 32
const PRINTED_TAIL = 32

const FNV_OFFSET = 0x81_1c_9d_c5
const FNV_PRIME = 0x01_00_01_93

/** Returns the same number for the same call, whatever the order of its keys; for others usually another one. */
export const printOf = ({ name, input }: Call): number => mixText(printOfValue(input), name)

function printOfValue(value: unknown): number {
  if (typeof value === 'string') return mixText(FNV_OFFSET, value)
  if (typeof value !== 'object' || value === null) return mixText(1, String(value))
  let print = 2
  if (Array.isArray(value)) {
    for (const item of value) print = Math.imul(print ^ printOfValue(item), FNV_PRIME)
    return print
  }
  // A sum: the order of the keys does not count.
  for (const [key, item] of Object.entries(value))
    print = (print + Math.imul(mixText(3, key), printOfValue(item) | 1)) | 0
  return print
}

/** FNV-1a, over UTF-16 code units. */
function mixText(print: number, text: string): number {
  const { length } = text
  const isShort = length <= PRINTED_HEAD + PRINTED_TAIL
  let mixedPrint = Math.imul(print ^ length, FNV_PRIME)
  const headEnd = isShort ? length : PRINTED_HEAD
  for (let at = 0; at < headEnd; at++) mixedPrint = Math.imul(mixedPrint ^ text.charCodeAt(at), FNV_PRIME)
  const tailStart = isShort ? length : length - PRINTED_TAIL
  for (let at = tailStart; at < length; at++) mixedPrint = Math.imul(mixedPrint ^ text.charCodeAt(at), FNV_PRIME)
  return mixedPrint
}

/** Returns the same text for the same call with the same result. */
export const hashOfResult = ({ name, input }: Call, result: Output): string =>
  hashText(canonicalJson([name, input]) + comparable(result))

/** Returns the same text for answers with the same calls, in any order and number. */
export const hashOfAnswer = (hashes: readonly string[]): string => hashText([...new Set(hashes)].sort().join(' '))

const hashText = (text: string): string => hash('sha256', text).slice(0, HASH_LENGTH)

/**
 * Leaves out the names that the server gave: of the file with the complete output, and of what runs in the background.
 */
function comparable({ output, error_type, error_message, truncated }: Output): string {
  const text = JSON.stringify([output, error_type, error_message])
  const isNamed = truncated === true || STARTED.test(text)
  return isNamed ? text.replaceAll(UUID, '').replace(STARTED, '') : text
}

const UUID = /[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}/g
const STARTED = /"background_(?:pid":\d+|id":"[^"]{0,100}")/
