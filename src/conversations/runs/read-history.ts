/** Reads the messages that the model has read from the log of a conversation. */
import type { History } from '../../agent/history/history.ts'
import type { RenderOutput } from '../../agent/tool-messages.ts'
import { HISTORY_TYPES } from '../../agent/history/history-types.ts'
import { createHistory } from '../../agent/history/history.ts'
import type { EventLog } from '../../events/event-log.ts'
import { readPages } from '../../events/read-pages.ts'

/** Events read at a time: a pause waits for one read at most. */
const HISTORY_PAGE = { limit: 1000, maxBytes: 1024 * 1024 }

/** The id of a subagent, and where its messages begin in the log. */
export type OfSubagent = { readonly agentId: string; readonly firstSeq: number }

/** Reads up to the event `head`. Throws the signal's reason when it is aborted. */
export async function readHistory(
  log: Pick<EventLog, 'read'>,
  render: RenderOutput,
  head: number,
  signal: AbortSignal,
  subagent?: OfSubagent,
): Promise<History> {
  const history = createHistory(render, subagent?.agentId)
  const from = subagent && { afterSeq: subagent.firstSeq - 1 }
  const wanted = { types: HISTORY_TYPES, beforeSeq: head + 1, ...from, ...HISTORY_PAGE }
  for await (const { events } of readPages(log, wanted, signal)) for (const { event } of events) history.add(event)
  return history
}
