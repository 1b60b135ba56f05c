/**
 * Follows JSON text as it arrives, and detects when it is one complete object. Scans each character once, however often
 * it is asked.
 */

export type ObjectWatch = {
  add(piece: string): void
  /**
   * True if an object began and was closed, with only whitespace around it. The parser may still refuse its content.
   */
  readonly isClosed: boolean
  /** The number of values so far, names of objects included. Nothing counts that is not part of an object. */
  readonly values: number
}

export function createObjectWatch(): ObjectWatch {
  let state: 'before' | 'inside' | 'closed' | 'other' = 'before'
  let depth = 0
  let values = 0
  let isString = false
  let isEscaped = false

  const takeInside = (code: number) => {
    if (isEscaped) isEscaped = false
    else if (isString) {
      if (code === BACKSLASH) isEscaped = true
      else if (code === QUOTE) isString = false
    } else if (code === QUOTE) isString = true
    else if (code === COMMA || code === COLON) values++
    else if (code === OPEN_OBJECT || code === OPEN_LIST) {
      values++
      depth++
    } else if ((code === CLOSE_OBJECT || code === CLOSE_LIST) && --depth === 0) state = 'closed'
  }

  return {
    add(piece) {
      for (let at = 0; at < piece.length && state !== 'other'; at++) {
        const code = piece.charCodeAt(at)
        if (state === 'inside') takeInside(code)
        else if (JSON_SPACE.has(code)) continue
        else if (state === 'before' && code === OPEN_OBJECT) [state, depth] = ['inside', 1]
        else state = 'other'
      }
    },
    get isClosed() {
      return state === 'closed'
    },
    get values() {
      return values
    },
  }
}

const [QUOTE, COMMA, COLON, BACKSLASH] = [0x22, 0x2c, 0x3a, 0x5c]
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d]
const JSON_SPACE: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d])
