/** Holds the text so far of the messages being streamed, for those who join in the middle. */
import type { AssistantDelta, TransientDraft } from '../contract/event.ts'
import type { TransientRecord } from './transient-record.ts'
import { createTransientRecord } from './transient-record.ts'

/** UTF-16 units kept of one part. Of a longer one its end is kept: what comes next still joins on to it. */
const MAX_PART_LENGTH = 1024 * 1024
/** Messages streamed at a time: of the agent and of its subagents. The oldest gives way. */
const MAX_MESSAGES = 64
/** Chunks to collect before joining: each costs more than the few characters in it. */
const MAX_CHUNKS = 256

type Kind = 'text_delta' | 'reasoning_delta' | 'tool_input_delta'
const KINDS = ['text_delta', 'reasoning_delta', 'tool_input_delta'] as const satisfies Kind[]

/** One part of a message: `chunks` joined are its text from `offset` to `end`. `about` is its latest delta. */
type Part = { about: AssistantDelta; kind: Kind; chunks: string[]; offset: number; end: number }

export class LiveMessages {
  readonly #messages = new Map<string, Map<string, Part>>()

  get isEmpty(): boolean {
    return this.#messages.size === 0
  }

  add(delta: AssistantDelta): void {
    const parts = this.#partsOf(delta.message_id)
    for (const kind of KINDS) {
      const text = delta[kind]
      if (text !== undefined) addTo(parts, kind, delta, text)
    }
  }

  /** The durable message came, or its attempt was given up. */
  forget(messageId: string): void {
    this.#messages.delete(messageId)
  }

  forgetAll(): void {
    this.#messages.clear()
  }

  /** One delta for each part, in the order the parts began. */
  soFar(conversationId: string, now: number): TransientRecord[] {
    const parts = [...this.#messages.values()].flatMap((parts) => [...parts.values()])
    return parts.map((part) => createTransientRecord(deltaOf(part), conversationId, now))
  }

  #partsOf(messageId: string): Map<string, Part> {
    let parts = this.#messages.get(messageId)
    if (!parts) {
      parts = new Map()
      this.#messages.set(messageId, parts)
      const oldest = this.#messages.keys().next()
      if (this.#messages.size > MAX_MESSAGES && !oldest.done) this.#messages.delete(oldest.value)
    }
    return parts
  }
}

function addTo(parts: Map<string, Part>, kind: Kind, delta: AssistantDelta, text: string): void {
  const key = `${kind} ${delta.index}`
  let part = parts.get(key)
  // A gap can't be told in one delta: begin anew behind it.
  if (part?.end !== delta.offset) part = { about: delta, kind, chunks: [], offset: delta.offset, end: delta.offset }
  parts.set(key, part)
  part.about = delta
  part.chunks.push(text)
  part.end += text.length
  if (part.chunks.length > MAX_CHUNKS || part.end - part.offset > MAX_PART_LENGTH) join(part)
}

function join(part: Part): void {
  const text = part.chunks.join('')
  // Half of it at once, or each further chunk would copy the whole again.
  const kept = text.length > MAX_PART_LENGTH ? text.slice(-MAX_PART_LENGTH / 2) : text
  part.chunks = [kept]
  part.offset = part.end - kept.length
}

function deltaOf(part: Part): TransientDraft {
  join(part)
  const { message_id, index, run_id } = part.about
  const about = { type: 'AssistantDelta' as const, message_id, index, ...(run_id !== undefined && { run_id }) }
  return { ...about, offset: part.offset, [part.kind]: part.chunks[0]! }
}
