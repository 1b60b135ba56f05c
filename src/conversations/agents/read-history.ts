/** Reads the messages that the model has read from the log of a conversation. */
import type { RenderOutput } from '../../agent/history/tool-messages.ts'
import type { ForgottenRange } from '../../state/state-shape.ts'
import { HISTORY_TYPES, TYPES_OF_FORGOTTEN } from '../../agent/history/history-types.ts'
import { History } from '../../agent/history/history.ts'
import type { EventLog } from '../../events/event-log.ts'
import { isMarkedAsSubagents } from '../../events/event-header.ts'
import type { StoredEvent } from '../../events/event-store.ts'
import type { RewoundSpan } from '../../contract/events/rewound.ts'
import { holds } from '../../contract/events/rewound.ts'
import { readPages } from '../../events/read-pages.ts'

/** Events read at a time: a pause waits for one read at most. */
const HISTORY_PAGE = { limit: 1000, maxBytes: 1024 * 1024 }

/** The id of a subagent, and where its messages begin in the log. */
export type OfSubagent = { readonly agentId: string; readonly firstSeq: number }

/** The agent whose history it is. The main agent has no id and begins at the first event. */
export type OfAgent = Partial<OfSubagent> & {
  readonly forgotten: ForgottenRange | undefined
  /** What the agent does not read because the conversation went back. */
  readonly rewound: readonly RewoundSpan[]
}

/**
 * Reads up to the event `head`, and of what a compaction forgot only what still matters. Throws the signal's reason when
 * it is aborted.
 */
export async function readHistory(
  log: Pick<EventLog, 'read'>,
  render: RenderOutput,
  head: number,
  signal: AbortSignal,
  { agentId, firstSeq = 1, forgotten, rewound }: OfAgent,
): Promise<History> {
  const history = new History(render, { agentId, forgotten })
  const read = async (types: ReadonlySet<string>, afterSeq: number, beforeSeq: number) => {
    const page = { types, afterSeq, beforeSeq, ...HISTORY_PAGE }
    for await (const { events } of readPages(log, page, signal))
      for (const storedEvent of events) {
        if (rewound.length > 0 && !holds(rewound, storedEvent)) leaveOut(history, storedEvent)
        else if (!isOfOther(storedEvent, agentId)) history.add(storedEvent.event)
      }
  }
  const start = forgotten?.throughSeq ?? 0
  if (start >= firstSeq) await read(TYPES_OF_FORGOTTEN, firstSeq - 1, start + 1)
  await read(HISTORY_TYPES, Math.max(firstSeq - 1, start), head + 1)
  return history
}

/** A call must not get the id of one that was rewound. */
function leaveOut(history: History, storedEvent: StoredEvent): void {
  if (storedEvent.type === 'ToolUse' && storedEvent.event.type === 'ToolUse')
    history.addCallId(storedEvent.event.tool_use_id)
}

/** The main agent reads neither the answers of subagents nor the results of their calls. */
const isOfOther = (storedEvent: StoredEvent, agentId: string | undefined): boolean =>
  agentId === undefined && !TYPES_OF_FORGOTTEN.has(storedEvent.type) && isMarkedAsSubagents(storedEvent)
