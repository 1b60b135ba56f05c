/** Finds the event that the forks of a replay begin after. */
import { holds } from '../contract/events/rewound.ts'
import { Problem } from '../contract/problem.ts'
import type { CreateReplay } from '../contract/replay.ts'
import type { ForkSource } from '../conversations/fork-source.ts'
import { readPages } from '../events/read-pages.ts'

const MESSAGES: ReadonlySet<string> = new Set(['UserMessage', 'MessageWithdrawn'])

/** Messages that were withdrawn, or taken back by a rewind, do not count. Throws a `Problem` if there is no such event. */
export async function findReplayStart({ id, log, state }: ForkSource, at: CreateReplay['at']): Promise<number> {
  if (typeof at === 'number') {
    if (at <= log.head) return at
    const { head } = log
    const message = `The log of conversation ${id} ends at event ${head}, before event ${at}. Begin at an earlier one.`
    throw new Problem('cursor_ahead', message, { details: { at_seq: at, head } })
  }
  const withdrawn = new Set<number>()
  let foundSeq: number | undefined
  for await (const { events } of readPages(log, { order: 'desc', types: MESSAGES, limit: 100 }))
    for (const { event } of events) {
      if (event.type === 'MessageWithdrawn') withdrawn.add(event.message_seq)
      else if (holds(state.rewound, event) && !withdrawn.has(event.seq)) foundSeq = event.seq
      if (foundSeq !== undefined && at === 'last_message') return foundSeq
    }
  if (foundSeq !== undefined) return foundSeq
  throw new Problem('invalid_request', `Conversation ${id} has no message to answer once more. Send at as a seq.`)
}
