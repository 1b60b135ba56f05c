/**
 * Makes the deltas of a message continuous over several connections: a new connection begins with the text so far, of
 * which the reader already has a part.
 */
import type { AssistantDelta } from '../../contract/events/transient-event.ts'

const KINDS = ['text_delta', 'reasoning_delta', 'tool_input_delta'] as const

/** Parts of messages that are written at the same time. The oldest is forgotten first. */
const MAX_PARTS = 256

export class LiveText {
  /** Offset up to which the reader has the text, by part. */
  readonly #ends = new Map<string, number>()

  /** Returns what the reader does not have yet, if there is something. */
  fresh(delta: AssistantDelta): AssistantDelta | undefined {
    const kind = KINDS.find((name) => delta[name] !== undefined)
    if (!kind) return delta
    const text = delta[kind] ?? ''
    const part = `${delta.message_id} ${kind} ${delta.index}`
    const seenEnd = this.#ends.get(part)
    const end = delta.offset + text.length
    if (seenEnd !== undefined && end <= seenEnd) return undefined
    this.#move(part, end)
    if (seenEnd === undefined || delta.offset >= seenEnd) return delta
    return { ...delta, offset: seenEnd, [kind]: text.slice(seenEnd - delta.offset) }
  }

  #move(part: string, end: number): void {
    this.#ends.set(part, end)
    const [oldest] = this.#ends.keys()
    if (this.#ends.size > MAX_PARTS && oldest !== undefined) this.#ends.delete(oldest)
  }
}

export const isDelta = (event: object): event is AssistantDelta => 'type' in event && event.type === 'AssistantDelta'
