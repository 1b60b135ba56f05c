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
  #messages = BURST_MESSAGES
  #bytes = BURST_BYTES
  #at = performance.now()

  /** Returns for how many milliseconds to stop reading after these messages. */
  take(messages: number, bytes: number): number {
    const now = performance.now()
    const seconds = (now - this.#at) / 1000
    this.#at = now
    this.#messages = Math.min(BURST_MESSAGES, this.#messages + seconds * MESSAGES_PER_SECOND) - messages
    this.#bytes = Math.min(BURST_BYTES, this.#bytes + seconds * BYTES_PER_SECOND) - bytes
    const late = Math.max(-this.#messages / MESSAGES_PER_SECOND, -this.#bytes / BYTES_PER_SECOND)
    return late > 0 ? Math.ceil(late * 1000) : 0
  }
}
