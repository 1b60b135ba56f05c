/**
 * Projects the events of a conversation to the updates of a session of version 2. A message that is being written grows by
 * chunks; when it is complete, it is sent as a whole, so that live and replayed sessions are equal.
 */
import type * as v1 from '@agentclientprotocol/sdk'
import type { SessionUpdate } from '@agentclientprotocol/sdk/experimental/v2'
import type { Event, EventOf } from '../../contract/events/event.ts'
import type { TransientEvent } from '../../contract/events/transient-event.ts'
import type { UserPart } from '../../contract/values/message.ts'
import { joinReasoning } from '../../contract/values/message.ts'
import { Projection } from './projection.ts'
import { diffOfEdits } from './file-diff.ts'
import { inVersion2, textBlock, thoughtId } from './update-words.ts'

type MessageKind = 'agent_message' | 'agent_thought'

export class ProjectionV2 {
  readonly #workdir: string
  readonly #first: Projection
  /** Messages of which a part was sent, with what is not complete. */
  readonly #begun = new Map<string, Set<MessageKind>>()
  /** Calls of subagents that work in the background: the result of the call is not their end. */
  readonly #background = new Set<string>()

  constructor(workdir: string) {
    this.#workdir = workdir
    this.#first = new Projection({ workdir, isOwn: () => false, showsNotices: true })
  }

  take(event: Event | TransientEvent): SessionUpdate[] {
    switch (event.type) {
      case 'UserMessage':
        return [{ sessionUpdate: 'user_message', messageId: event.id, content: event.content.map(blockOf) }]
      case 'AssistantMessage':
        return this.#complete(event)
      case 'AssistantAborted':
      case 'ModelRetry':
        return [...this.#retract(event.message_id), ...this.#rest(event)]
      case 'ToolUse':
        return this.#first.take(event).flatMap(wholeInVersion2)
      case 'ToolResult':
        return this.#rest(event).map((update) => this.#resultOf(event, update))
      case 'SubagentStart':
        if (event.background) this.#background.add(event.parent_tool_use_id)
        return []
      case 'Result':
        return this.#end(event)
      case 'Condensation':
        return [compactionOf(event)]
      default:
        return this.#rest(event)
    }
  }

  /** The projection of version 1 says what a client cannot take back; here it can. */
  #rest(event: Event | TransientEvent): SessionUpdate[] {
    const updates = this.#first.take(event).flatMap(inVersion2)
    if (event.type === 'AssistantDelta') for (const update of updates) this.#note(event.message_id, update)
    return event.type === 'AssistantDelta'
      ? updates
      : updates.filter(({ sessionUpdate }) => !CHUNKS.has(sessionUpdate)).map(asCancelled)
  }

  #note(messageId: string, { sessionUpdate }: SessionUpdate): void {
    const kind = sessionUpdate === 'agent_message_chunk' ? 'agent_message' : 'agent_thought'
    if (CHUNKS.has(sessionUpdate)) this.#begun.set(messageId, (this.#begun.get(messageId) ?? new Set()).add(kind))
  }

  #complete(event: EventOf<'AssistantMessage'>): SessionUpdate[] {
    const rest = this.#rest(event)
    if (event.parent_tool_use_id !== undefined) return rest
    const { message_id, text, content } = event
    const begunKinds = this.#begun.get(message_id)
    this.#begun.delete(message_id)
    const whole = (sessionUpdate: MessageKind, body: string) =>
      body !== '' || begunKinds?.has(sessionUpdate) === true ? [messageOf(sessionUpdate, message_id, body)] : []
    return [...whole('agent_thought', joinReasoning(content)), ...whole('agent_message', text), ...rest]
  }

  #retract(messageId: string): SessionUpdate[] {
    const kinds = [...(this.#begun.get(messageId) ?? [])]
    this.#begun.delete(messageId)
    return kinds.map((kind) => messageOf(kind, messageId, ''))
  }

  #resultOf(
    { is_error, error_type, changes, tool_use_id }: EventOf<'ToolResult'>,
    update: SessionUpdate,
  ): SessionUpdate {
    if (update.sessionUpdate !== 'tool_call_update') return update
    if (is_error) return { ...update, status: error_type === 'interrupted' ? 'cancelled' : 'failed' }
    if (this.#background.has(tool_use_id)) return { ...update, status: 'in_progress' }
    return changes && changes.length > 0 ? { ...update, content: [diffOfEdits(changes, this.#workdir)] } : update
  }

  #end(event: EventOf<'Result'>): SessionUpdate[] {
    const { parent_tool_use_id: toolCallId, stop_reason: reason } = event
    if (toolCallId === undefined) {
      const retractions = [...this.#begun.keys()].flatMap((id) => this.#retract(id))
      return [...retractions, ...this.#rest(event)]
    }
    if (!this.#background.delete(toolCallId)) return []
    const status = DONE.has(reason) ? 'completed' : STOPPED.has(reason) ? 'cancelled' : 'failed'
    return [{ sessionUpdate: 'tool_call_update', toolCallId, status }]
  }
}

const CHUNKS: ReadonlySet<string> = new Set(['agent_message_chunk', 'agent_thought_chunk'])
const DONE: ReadonlySet<string> = new Set(['completed', 'finished', 'hook'])
const STOPPED: ReadonlySet<string> = new Set(['paused', 'cancelled', 'rejected', 'superseded'])

function messageOf(sessionUpdate: MessageKind, id: string, text: string): SessionUpdate {
  const content = text === '' ? [] : [textBlock(text)]
  return sessionUpdate === 'agent_thought'
    ? { sessionUpdate, messageId: thoughtId(id), content }
    : { sessionUpdate, messageId: id, content }
}

/** The message of the tool Finish comes in one piece. */
const wholeInVersion2 = (update: v1.SessionUpdate): SessionUpdate[] =>
  update.sessionUpdate === 'agent_message_chunk' && update.content.type === 'text'
    ? [messageOf('agent_message', update.messageId ?? '', update.content.text)]
    : inVersion2(update)

/** Calls of an answer that was taken back have no name in these updates, and have not failed. */
const asCancelled = (update: SessionUpdate): SessionUpdate =>
  update.sessionUpdate === 'tool_call_update' && update.status === 'failed' && update.rawOutput === undefined
    ? { ...update, status: 'cancelled' }
    : update

const blockOf = (part: UserPart) =>
  part.type === 'text' ? textBlock(part.text) : ({ type: 'image', mimeType: part.media_type, data: part.data } as const)

const compactionOf = ({ id, summary, failure }: EventOf<'Condensation'>): SessionUpdate => ({
  sessionUpdate: 'compaction_update',
  compactionId: id,
  status: failure === undefined ? 'completed' : 'failed',
  ...(summary !== undefined && { summary: [textBlock(summary)] }),
  ...(failure !== undefined && { error: failure }),
})
