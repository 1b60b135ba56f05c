/** Keeps the text so far of the messages being streamed, for readers who join in the middle. */
import type { AssistantDelta, TransientDraft } from '../contract/events/transient-event.ts'
import { withoutUndefined } from '../lib/without-undefined.ts'
import type { TransientRecord } from './transient-record.ts'
import { createTransientRecord } from './transient-record.ts'

/** UTF-16 units kept per part. Of a longer one the end is kept, to which the next delta connects. */
const MAX_PART_LENGTH = 256 * 1024
/** Parts of all messages streamed concurrently, by the agent and its subagents. The oldest is removed first. */
const MAX_PARTS = 64
/** Chunks collected before joining: each costs more than the few characters in it. */
const MAX_CHUNKS = 256

const KINDS = ['text_delta', 'reasoning_delta', 'tool_input_delta'] as const
type Kind = (typeof KINDS)[number]

/** One part of a message: the joined `chunks` are its text from `offset` to `end`. `about` is its latest delta. */
type Part = { about: AssistantDelta; kind: Kind; chunks: string[]; offset: number; end: number }

export class LiveMessages {
  readonly #parts = new Map<string, Part>()

  get isEmpty(): boolean {
    return this.#parts.size === 0
  }

  add(delta: AssistantDelta): void {
    for (const kind of KINDS) {
      const text = delta[kind]
      if (text !== undefined) this.#addTo(`${delta.message_id} ${kind} ${delta.index}`, kind, delta, text)
    }
  }

  /** Forgets a message whose durable event was stored or whose attempt was given up. */
  forget(messageId: string): void {
    for (const [key, { about }] of this.#parts) if (about.message_id === messageId) this.#parts.delete(key)
  }

  forgetAll(): void {
    this.#parts.clear()
  }

  /** Returns one delta for each part, in the order the parts began. */
  soFar(conversationId: string, now: number): TransientRecord[] {
    return Array.from(this.#parts.values(), (part) => createTransientRecord(deltaOf(part), conversationId, now))
  }

  #addTo(key: string, kind: Kind, delta: AssistantDelta, text: string): void {
    let part = this.#parts.get(key)
    if (part?.end !== delta.offset) {
      // The delta starts a part, or follows a gap, which one delta cannot express: start over after the gap.
      part = { about: delta, kind, chunks: [], offset: delta.offset, end: delta.offset }
      this.#parts.set(key, part)
      const [oldest] = this.#parts.keys()
      if (this.#parts.size > MAX_PARTS && oldest !== undefined) this.#parts.delete(oldest)
    }
    part.about = delta
    part.chunks.push(text)
    part.end += text.length
    if (part.chunks.length > MAX_CHUNKS || part.end - part.offset > MAX_PART_LENGTH) join(part)
  }
}

function join(part: Part): void {
  const text = part.chunks.join('')
  // Drop half of it: otherwise each further chunk would copy all of it again.
  const keptText = text.length > MAX_PART_LENGTH ? text.slice(-MAX_PART_LENGTH / 2) : text
  part.chunks = [keptText]
  part.offset = part.end - keptText.length
}

function deltaOf(part: Part): TransientDraft {
  join(part)
  const { message_id, index, run_id, tool_use_id, tool_name, parent_tool_use_id, agent_name } = part.about
  const call = withoutUndefined({ run_id, parent_tool_use_id, agent_name, tool_use_id, tool_name })
  const about = { type: 'AssistantDelta' as const, message_id, index, ...call }
  return { ...about, offset: part.offset, [part.kind]: part.chunks.join('') }
}
