/** Finds the message that has the id of a client. Its event has the id: both are stored, or neither. */
import { isDeepStrictEqual } from 'node:util'
import type { EventOf } from '../contract/events/event.ts'
import { Problem } from '../contract/problem.ts'
import type { UserInput } from '../contract/values/message.ts'
import { partsOf } from '../contract/values/message.ts'
import type { EventLog } from '../events/event-log.ts'
import { seqsOfId, type ClientMessage } from '../state/idempotency.ts'
import type { State } from '../state/state.ts'

type PostedEvent = EventOf<'UserMessage'>

/**
 * Reads one event, or nothing if the id is new. Call it in turn, if a message is stored without one. Throws the `Problem`
 * `message_exists` if the id has another message.
 */
export async function findPostedMessage(
  log: Pick<EventLog, 'read'>,
  state: Pick<State, 'messageIds'>,
  clientMessage: ClientMessage,
  message: UserInput,
): Promise<PostedEvent | undefined> {
  for (const seq of seqsOfId(state, clientMessage.id)) {
    const { events } = await log.read({ afterSeq: seq - 1, beforeSeq: seq + 1, limit: 1 })
    const event = events[0]?.event
    if (event?.type !== 'UserMessage' || event.client_message_id !== clientMessage.id) continue
    if (isSame(event, clientMessage, message)) return event
    throw new Problem(
      'message_exists',
      'The conversation has another message with this client_message_id; choose another id for a new message.',
      { details: { event_id: event.id, seq } },
    )
  }
  return undefined
}

/** A conversation that came from another server has hashes that this one cannot compare. */
function isSame(event: PostedEvent, { bodyHash, formerHashes }: ClientMessage, message: UserInput): boolean {
  if ([bodyHash, ...formerHashes].includes(event.body_hash ?? '')) return true
  return isDeepStrictEqual(event.content, partsOf(message.content)) && event.sender === message.sender
}
