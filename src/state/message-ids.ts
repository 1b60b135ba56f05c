/**
 * Finds the messages of a conversation that have an id of a client. All of them are known for as long as the
 * conversation exists, so that none is ever stored twice: an entry is 16 characters of the id's hash, and the seq. It is
 * one text, because adding an entry to a text copies nothing. Pure.
 */
import { createHash } from 'node:crypto'
import type { State } from './state-shape.ts'

type MessageIds = Pick<State, 'messageIds'>

export const withMessageId = ({ messageIds }: MessageIds, id: string, seq: number): MessageIds => ({
  messageIds: `${messageIds}${entryOf(id)}${seq} `,
})

/** Returns the seqs of the messages that may have the id, the newest first: other ids can have the same hash. */
export function* seqsOfId({ messageIds }: MessageIds, id: string): Generator<number, void, void> {
  const entry = entryOf(id)
  for (let at = messageIds.lastIndexOf(entry); at >= 0; at = at > 0 ? messageIds.lastIndexOf(entry, at - 1) : -1)
    yield Number.parseInt(messageIds.slice(at + entry.length), 10)
}

/** Hashes have no colon, and are as long as each other. */
const entryOf = (id: string): string => `${createHash('sha256').update(id).digest('base64url').slice(0, 16)}:`
