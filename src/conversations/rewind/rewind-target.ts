/** Finds where a conversation can go back to: reads the log up to there, and what the agent had at that event. */
import type { Event } from '../../contract/events/event.ts'
import type { RewoundSpan } from '../../contract/events/rewound.ts'
import { holds, spanOf } from '../../contract/events/rewound.ts'
import { cursorAhead, Problem } from '../../contract/problem.ts'
import type { EventLog } from '../../events/event-log.ts'
import { readPages } from '../../events/read-pages.ts'
import type { State } from '../../state/state.ts'
import { EMPTY_STATE, fold } from '../../state/state.ts'

type Log = Pick<EventLog, 'read' | 'head'>

const PAGE = { limit: 1000, maxBytes: 1024 * 1024 }

/** Returns the state at the event. Throws `invalid_request` with the nearest event, if the conversation cannot go back to this one. */
export async function findTarget(log: Log, rewound: readonly RewoundSpan[], toSeq: number): Promise<State> {
  const { head } = log
  if (toSeq > head) throw cursorAhead('to_seq', toSeq, head)
  const turn = new OpenTurn()
  let state = EMPTY_STATE
  let before = 1
  for await (const { events } of readPages(log, { beforeSeq: toSeq + 1, ...PAGE }))
    for (const { event } of events) {
      state = fold(state, event)
      if (!holds(rewound, event)) continue
      turn.add(event)
      if (turn.isComplete && !spanOf(rewound, event.seq)) before = event.seq
    }
  if (before === toSeq) return state
  const after = await nextAfter(log, rewound, toSeq, turn)
  const nearest = after !== undefined && after - toSeq < toSeq - before ? after : before
  throw notABorder(toSeq, nearest, spanOf(rewound, toSeq) !== undefined)
}

/** Returns the first event after it to which the conversation can go back. */
async function nextAfter(
  log: Log,
  rewound: readonly RewoundSpan[],
  afterSeq: number,
  turn: OpenTurn,
): Promise<number | undefined> {
  for await (const { events } of readPages(log, { afterSeq, ...PAGE }))
    for (const { event } of events) {
      if (!holds(rewound, event)) continue
      turn.add(event)
      if (turn.isComplete && !spanOf(rewound, event.seq)) return event.seq
    }
  return undefined
}

/** Whether each call of the last answer of the main agent has its result. */
class OpenTurn {
  readonly #open = new Set<string>()

  get isComplete(): boolean {
    return this.#open.size === 0
  }

  add(event: Event): void {
    if ('parent_tool_use_id' in event && event.parent_tool_use_id !== undefined) return
    if (event.type === 'AssistantMessage') for (const id of event.tool_use_ids) this.#open.add(id)
    if (event.type === 'ToolResult') this.#open.delete(event.tool_use_id)
  }
}

const notABorder = (to_seq: number, nearest: number, isRewound: boolean) =>
  new Problem(
    'invalid_request',
    `${isRewound ? `Event ${to_seq} was rewound` : `Event ${to_seq} is within a turn of the agent`}. The nearest event to which the conversation can go back is ${nearest}. A fork can begin at any event.`,
    { details: { to_seq, nearest } },
  )
