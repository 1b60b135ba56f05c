/** Finds where the turns of a conversation begin and end. The only file of this protocol that says so. */
import type { Event } from '../../contract/events/event.ts'
import { holds } from '../../contract/events/rewound.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import { findInLog, readPages } from '../../events/read-pages.ts'
import { withdrawnIn } from '../shared/user-messages.ts'

/** `begins`: with this event. `ends`: it is the last one. */
export type TurnMark = 'begins' | 'ends' | 'inside' | 'outside'

/** `begun`: nothing works for the turn yet, or not any more until somebody answers. */
export type TurnState = 'begun' | 'none' | 'works'

const PAGE = { limit: 256, maxBytes: 1024 * 1024 }

/** Call `add` with the events that hold, in order, from the beginning of the log or the end of a turn on, or from where the state is known. */
export class TurnMarks {
  #state: TurnState

  constructor(state: TurnState = 'none') {
    this.#state = state
  }

  get state(): TurnState {
    return this.#state
  }

  add(event: Event): TurnMark {
    if (isEnd(event)) {
      this.#state = 'none'
      return 'ends'
    }
    if (event.type === 'UserMessage') {
      if (this.#state === 'works') return 'inside'
      this.#state = 'begun'
      return 'begins'
    }
    if (event.type !== 'StatusUpdate') return this.#state === 'none' ? 'outside' : 'inside'
    const isFirst = this.#state === 'none'
    if (event.status === 'running') this.#state = 'works'
    else if (!isFirst) this.#state = 'begun'
    if (!isFirst) return 'inside'
    // A run without a message, for example after a pause.
    return event.status === 'running' ? 'begins' : 'outside'
  }
}

/** True for what ends a turn of the main agent. */
const isEnd = (event: Event): boolean =>
  event.type === 'Rewound' ||
  (event.type === 'Result' && event.parent_tool_use_id === undefined && event.background_agent_id === undefined)

const ENDS: ReadonlySet<string> = new Set(['Result', 'Rewound'])
const MARKS: ReadonlySet<string> = new Set([...ENDS, 'UserMessage', 'StatusUpdate'])

/** Returns the seq of the first event of the turn that has not ended; undefined if all have ended. */
export const openTurn = async (conversation: Conversation): Promise<number | undefined> =>
  (await turnBefore(conversation, conversation.log.head + 1)).start

/** The same for the time before an event. */
export async function turnBefore(
  conversation: Conversation,
  beforeSeq: number,
): Promise<{ readonly start: number | undefined; readonly state: TurnState }> {
  const { log, state } = conversation
  const marks = new TurnMarks()
  let start: number | undefined
  const afterSeq = await lastEnd(conversation, beforeSeq)
  const withdrawn = await withdrawnIn(conversation, afterSeq)
  for await (const { events } of readPages(log, { afterSeq, beforeSeq, types: MARKS, ...PAGE }))
    for (const { event, seq } of events) {
      if (!holds(state.rewound, event) || withdrawn.has(seq)) continue
      const mark = marks.add(event)
      if (mark === 'begins') start = seq
      if (mark === 'ends') start = undefined
    }
  return { start, state: marks.state }
}

async function lastEnd({ log, state }: Conversation, beforeSeq: number): Promise<number> {
  const range = { beforeSeq, types: ENDS, order: 'desc', ...PAGE } as const
  const isLast = (event: Event) => isEnd(event) && holds(state.rewound, event)
  return (await findInLog(log, range, ({ event, seq }) => (isLast(event) ? seq : undefined))) ?? 0
}
