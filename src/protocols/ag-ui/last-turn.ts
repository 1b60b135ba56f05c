/** Finds the newest turn of a conversation: a request without a message shows it. */
import type { EventType } from '../../contract/events/event.ts'
import { holds } from '../../contract/events/rewound.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import { readPages } from '../../events/read-pages.ts'
import { TurnChanges } from '../items/turn-changes.ts'

const PAGE = 256
const BORDERS: ReadonlySet<EventType> = new Set(['UserMessage', 'MessageWithdrawn', 'Result'])
const CONTINUING: ReadonlySet<EventType> = new Set(['UserMessage', 'RequestAnswered', 'RequestClosed'])

/** Returns the seq of its first event; undefined without any message that holds. A turn that rested begins with what continued it. */
export async function lastTurnStart(conversation: Conversation): Promise<number | undefined> {
  const withdrawn = new Set<number>()
  const first = await firstMessage(conversation, withdrawn)
  if (first === undefined) return undefined
  const changes = new TurnChanges()
  let [start, isOver] = [first, false]
  for await (const { events } of readPages(conversation.log, { afterSeq: first - 1, limit: PAGE }))
    for (const { event, seq } of events) {
      if (withdrawn.has(seq) || !holds(conversation.state.rewound, event)) continue
      const continues = CONTINUING.has(event.type) || (event.type === 'StatusUpdate' && event.status === 'running')
      if (isOver && continues) [start, isOver] = [seq, false]
      if (changes.add(event).some(({ type }) => type === 'rests' || type === 'ended')) isOver = true
    }
  return start
}

/** The first message after the end of the run before the last message. Adds the messages that were withdrawn to `withdrawn`. */
async function firstMessage({ log, state }: Conversation, withdrawn: Set<number>): Promise<number | undefined> {
  let first: number | undefined
  for await (const { events } of readPages(log, {
    beforeSeq: log.head + 1,
    types: BORDERS,
    order: 'desc',
    limit: PAGE,
  }))
    for (const { event, seq } of events) {
      if (event.type === 'MessageWithdrawn') withdrawn.add(event.message_seq)
      if (event.type === 'UserMessage' && !withdrawn.has(seq) && holds(state.rewound, event)) first = seq
      const isEnd =
        event.type === 'Result' && event.parent_tool_use_id === undefined && event.background_agent_id === undefined
      if (isEnd && first !== undefined) return first
    }
  return first
}
