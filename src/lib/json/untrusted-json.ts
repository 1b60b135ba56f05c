/** Parses JSON from untrusted sources. The only file that decides how deep and how large its values may be. */

/** Code that walks a value recurses once per level, and the stack is limited. */
const MAX_JSON_DEPTH = 100

/** Small values cost far more than their characters: ten million characters of `[],` take a second to parse. */
const MAX_JSON_VALUES = 50_000

/** The text was not parsed; the message is a clause that says why, and quotes nothing of it. */
export class ComplexJson extends Error {
  override readonly name = 'ComplexJson'
}

/** A name of an object that has not occurred before costs twenty times as much as a value. */
type JsonLimits = { readonly depth?: number; readonly values?: number; readonly names?: number }

/** Throws `ComplexJson` before anything is built, and a `SyntaxError` for invalid JSON. */
export function parseUntrustedJson(text: string, limits?: JsonLimits): unknown {
  refuseComplexJson(text, limits)
  return JSON.parse(text)
}

/**
 * Returns undefined for invalid JSON, for other values than objects, and for an object that is too deep or too large.
 */
export function parseJsonObject(text: string): Record<string, unknown> | undefined {
  try {
    const value = parseUntrustedJson(text)
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- an object that is not a list
    return isObject ? (value as Record<string, unknown>) : undefined
  } catch {
    // Invalid JSON and excessive JSON have the same result.
    return undefined
  }
}

/** Runs in linear time. Invalid JSON may pass: the parser refuses it. */
export function refuseComplexJson(
  text: string,
  { depth = MAX_JSON_DEPTH, values = MAX_JSON_VALUES, names = values }: JsonLimits = {},
): void {
  let level = 0
  let count = 1
  let nameCount = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) {
      // Most strings have no backslash before their end.
      const quote = text.indexOf('"', at + 1)
      at = quote > 0 && text.charCodeAt(quote - 1) !== BACKSLASH ? quote : endOfString(text, at + 1)
    } else if (code === COMMA) count++
    else if (code === COLON) nameCount++
    else if (code === OPEN_LIST || code === OPEN_OBJECT) {
      count++
      if (++level > depth) throw new ComplexJson(`is nested more than ${depth} levels deep`)
    } else if (code === CLOSE_LIST || code === CLOSE_OBJECT) level--
    if (count > values) throw new ComplexJson(`holds more than ${values} values`)
    if (nameCount > names) throw new ComplexJson(`holds more than ${names} names`)
  }
}

const [QUOTE, COMMA, COLON, BACKSLASH] = [0x22, 0x2c, 0x3a, 0x5c]
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d]

/** Returns the position of the closing quote of the string whose first character is at `start`. */
function endOfString(text: string, start: number): number {
  for (let from = start; ;) {
    const quote = text.indexOf('"', from)
    if (quote < 0) return text.length
    let first = quote
    while (first > from && text.charCodeAt(first - 1) === BACKSLASH) first--
    if ((quote - first) % 2 === 0) return quote
    from = quote + 1
  }
}
