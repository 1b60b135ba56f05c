/**
 * Measures JSON while it arrives, before it is parsed: small values cost far more memory and time than their bytes. It
 * counts as `refuseComplexJson` does, which needs the whole text.
 */
import { ComplexJson } from '../../lib/json/untrusted-json.ts'

/** A single tool with a schema that is too deep is left out; a message is not read at all. */
export const MAX_DEPTH = 200
/**
 * The number of values in one message: enough for lists of a thousand tools. With more, a message would hold up the
 * event loop.
 */
export const MAX_VALUES = 100_000
/** Names of objects, which cost most of all. */
export const MAX_NAMES = 50_000

export class JsonGauge {
  #depth = 0
  #values = 1
  #names = 0
  #isInString = false
  #isEscaped = false

  /** Called when a message has ended. */
  reset(): void {
    this.#depth = 0
    this.#values = 1
    this.#names = 0
    this.#isInString = false
    this.#isEscaped = false
  }

  /** Throws `ComplexJson`. */
  take(byte: number): void {
    // No string of valid JSON has a line break: a quote in another line of an event stream hides nothing.
    if (byte === LINE_FEED || byte === CARRIAGE_RETURN) this.#isInString = this.#isEscaped = false
    else if (this.#isInString) {
      if (this.#isEscaped) this.#isEscaped = false
      else if (byte === BACKSLASH) this.#isEscaped = true
      else if (byte === QUOTE) this.#isInString = false
    } else if (byte === QUOTE) this.#isInString = true
    else if (byte === COMMA) this.#count()
    else if (byte === COLON) this.#countName()
    else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
      this.#count()
      if (++this.#depth > MAX_DEPTH) throw new ComplexJson(`is nested more than ${MAX_DEPTH} levels deep`)
    } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) this.#depth = Math.max(0, this.#depth - 1)
  }

  #count(): void {
    if (++this.#values > MAX_VALUES) throw new ComplexJson(`holds more than ${MAX_VALUES} values`)
  }

  #countName(): void {
    if (++this.#names > MAX_NAMES) throw new ComplexJson(`holds more than ${MAX_NAMES} names`)
  }
}

const [LINE_FEED, CARRIAGE_RETURN, QUOTE, COMMA, COLON, BACKSLASH] = [0x0a, 0x0d, 0x22, 0x2c, 0x3a, 0x5c]
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d]
