/**
 * The ids of tasks and messages. A task is a turn of a conversation, from the message that begins it to the one that begins the next: its id
 * names both, so that it can be rebuilt from the log at any time. The only file that knows their form.
 */
import type { EventOf } from '../../contract/events/event.ts'

/** `start`: seq of the first event of the turn. */
export type TaskId = { readonly conversationId: string; readonly start: number }

const FORM = /^([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})-([1-9]\d{0,14})$/

export const formatTaskId = ({ conversationId, start }: TaskId): string => `${conversationId}-${start}`

/** Undefined for any other text. */
export function parseTaskId(text: string): TaskId | undefined {
  const [, conversationId, start] = FORM.exec(text) ?? []
  return conversationId === undefined ? undefined : { conversationId, start: Number(start) }
}

/** The context of a message that names none: the same message again is in the same one. */
export const contextOfMessage = (messageId: string): string => `a2a-${messageId}`

const PREFIX = 'a2a '

/** What a message of a client is stored with. Keys of other clients have no space. */
export const keyOfMessage = (messageId: string): string => PREFIX + messageId

/** A message without an id of its client has that of its event. */
export const messageIdOf = ({ client_message_id, idempotency_key: key, id }: EventOf<'UserMessage'>): string =>
  client_message_id ?? (key?.startsWith(PREFIX) ? key.slice(PREFIX.length) : id)
