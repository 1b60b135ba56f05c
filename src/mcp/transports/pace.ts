/**
 * Limits how fast messages of an MCP server are read: a server that floods is slowed down by its own full pipe, and
 * takes a bounded part of this process.
 */

const MESSAGES_PER_SECOND = 1000
const BURST_MESSAGES = 5000
const BYTES_PER_SECOND = 8 * 1024 ** 2
const BURST_BYTES = 32 * 1024 ** 2

/** The longest message, in bytes: enough for several images. */
export const MAX_MESSAGE_BYTES = 16 * 1024 ** 2

export class Pace {
  readonly #perSecond: number
  readonly #burst: number
  #messages: number
  #bytes = BURST_BYTES
  #at = performance.now()

  /** The defaults are those of messages; the limits of bytes are always the same. */
  constructor({ perSecond = MESSAGES_PER_SECOND, burst = BURST_MESSAGES } = {}) {
    this.#perSecond = perSecond
    this.#burst = burst
    this.#messages = burst
  }

  /** Returns for how many milliseconds to wait after these messages. */
  take(messages: number, bytes: number): number {
    const now = performance.now()
    const seconds = (now - this.#at) / 1000
    this.#at = now
    this.#messages = Math.min(this.#burst, this.#messages + seconds * this.#perSecond) - messages
    this.#bytes = Math.min(BURST_BYTES, this.#bytes + seconds * BYTES_PER_SECOND) - bytes
    const late = Math.max(-this.#messages / this.#perSecond, -this.#bytes / BYTES_PER_SECOND)
    return late > 0 ? Math.ceil(late * 1000) : 0
  }
}
