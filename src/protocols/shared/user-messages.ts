import type { EventOf } from '../../contract/events/event.ts'
import { holds } from '../../contract/events/rewound.ts'
import type { ReadOnlyConversation } from '../../conversations/registry/conversation-pages.ts'
import { readPages } from '../../events/read-pages.ts'

const PAGE = 64
const WITHDRAWN: ReadonlySet<string> = new Set(['MessageWithdrawn'])
const MESSAGES: ReadonlySet<string> = new Set(['UserMessage', 'MessageWithdrawn'])

type ReadLog = {
  readonly log: Pick<ReadOnlyConversation['log'], 'head' | 'read'>
  readonly state: Pick<ReadOnlyConversation['state'], 'rewound'>
}

/** Yields the messages of users that hold, the newest first. Keeps one page of the log at a time. */
export async function* userMessages({ log, state }: ReadLog): AsyncGenerator<EventOf<'UserMessage'>, void, void> {
  const withdrawn = new Set<number>()
  for await (const { events } of readPages(log, {
    beforeSeq: log.head + 1,
    types: MESSAGES,
    order: 'desc',
    limit: PAGE,
  }))
    for (const { event } of events) {
      if (event.type === 'MessageWithdrawn') withdrawn.add(event.message_seq)
      if (event.type === 'UserMessage' && !withdrawn.delete(event.seq) && holds(state.rewound, event)) yield event
    }
}

/** Returns the seqs of the messages that were withdrawn after this event. */
export async function withdrawnIn({ log }: Pick<ReadLog, 'log'>, afterSeq: number): Promise<ReadonlySet<number>> {
  const withdrawn = new Set<number>()
  for await (const { events } of readPages(log, { afterSeq, types: WITHDRAWN, limit: PAGE }))
    for (const { event } of events) if (event.type === 'MessageWithdrawn') withdrawn.add(event.message_seq)
  return withdrawn
}
