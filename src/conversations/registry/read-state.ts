/** Reads the state of a conversation from its stored log. */
import type { LogView, LogViews } from '../../events/event-store.ts'
import { readPages } from '../../events/read-pages.ts'
import type { ConversationStorage } from '../../storage/storage.ts'
import type { State } from '../../state/state.ts'
import { EMPTY_STATE, fold } from '../../state/state.ts'

type Log = Pick<LogView, 'head' | 'read'>

/** Events folded at a time. */
const FOLD_PAGE = 1000

/**
 * Folds a log that is not open, starting at `noted` if that belongs to this log; returns undefined if the log is empty.
 */
export async function readState(
  storage: Pick<ConversationStorage, 'openLog'>,
  notedState?: State,
): Promise<State | undefined> {
  const { log } = await storage.openLog()
  try {
    const state = await foldLog(log, notedState && (await belongsTo(log, notedState)) ? notedState : undefined)
    return state.createdAt ? state : undefined
  } finally {
    await log.close()
  }
}

/** Does the same without opening the log: another instance may write it. */
export async function readSharedState(storage: LogViews, id: string, notedState?: State): Promise<State | undefined> {
  await using log = await storage.view(id)
  const state = await foldLog(log, notedState && (await belongsTo(log, notedState)) ? notedState : undefined)
  return state.createdAt ? state : undefined
}

/** Continues from the noted state if it fits the log, otherwise folds from the beginning. */
export async function foldLog(log: Log, notedState: State | undefined): Promise<State> {
  let state = notedState && notedState.lastSeq <= log.head ? notedState : EMPTY_STATE
  if (state.lastSeq === log.head) return state
  for await (const { events } of readPages(log, { afterSeq: state.lastSeq, limit: FOLD_PAGE }))
    for (const { event } of events) state = fold(state, event)
  return state
}

/** True if the state was noted at the log's event of that seq: the log file may have been replaced by another. */
async function belongsTo(log: Log, { lastSeq, updatedAt }: State): Promise<boolean> {
  const { events } = await log.read({ afterSeq: lastSeq - 1, beforeSeq: lastSeq + 1, limit: 1 })
  return events[0]?.event.timestamp === updatedAt
}
