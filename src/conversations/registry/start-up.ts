/**
 * Reads the data directory at startup: finds the conversations, and finishes creations and deletions that a server stop
 * interrupted.
 */
import { rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { Problem } from '../../contract/problem.ts'
import { lazily } from '../../lib/lazily.ts'
import { mapBounded } from '../../lib/map-bounded.ts'
import { removeTree } from '../../files/trees/remove-tree.ts'
import type { Logger } from '../../telemetry/logger.ts'
import type { CreationKey, Storage, Summary } from '../../storage/storage.ts'
import type { IsOurs } from '../../shell/processes/marked-processes.ts'
import { KEY_LIFETIME_MS } from '../../state/idempotency.ts'
import { summarize } from './listing.ts'
import { removeData, stateOnDisk } from './removal.ts'
import { isShort, readSnapshot, writeSnapshot } from '../../state/snapshot.ts'
import { readSharedState, readState } from './read-state.ts'
import type { State } from '../../state/state.ts'
import { sharedSummary } from './summary-rows.ts'
import { EMPTY_STATE } from '../../state/state.ts'

export type StartUpDeps = {
  readonly storage: Storage
  readonly workdirBase: string
  /**
   * Ends the processes that an earlier server left in those conversations; returns the ids of the conversations that
   * had some.
   */
  readonly endOrphans: (isOurs: IsOurs) => Promise<readonly string[]>
  /** Removes temporary files that an earlier server has left of what worked for this conversation. */
  readonly removeLeft: (id: string) => Promise<void>
  readonly logger: Logger
}

export type FoundConversations = {
  readonly summaries: readonly Summary[]
  /** Remembered keys of deleted conversations. */
  readonly deletedKeys: readonly CreationKey[]
}

/** No creation takes longer, in milliseconds. */
const CREATION_MS = 60 * 60_000

/** Conversations whose files are read concurrently. */
const CONCURRENCY = 64

/**
 * Reads a conversation's own files only if its log differs from the recorded one. Opens only logs that are newer than
 * their `meta.json`. Throws the reason of an aborted signal.
 */
export async function scanDataDirectory(deps: StartUpDeps, signal: AbortSignal): Promise<FoundConversations> {
  const { storage } = deps
  const [ids, notedSummaries, deletedIds, deletedKeys] = await Promise.all([
    storage.ids(),
    storage.summaries.read(),
    storage.deletions.ids(),
    storage.deletions.keys(Date.now() - KEY_LIFETIME_MS),
  ])
  const goneIds = new Set(deletedIds)
  // Almost always there are no leftover processes, and this is never called.
  const knownIds = lazily(() => new Set([...ids, ...goneIds]))
  if (ids.length + goneIds.size > 0) await endLeftProcesses(deps, (id) => knownIds().has(id))
  await storage.instances?.endFormer()
  const there = goneIds.size === 0 ? ids : ids.filter((id) => !goneIds.has(id))
  if (goneIds.size > 0) {
    const idsToDelete = ids.filter((id) => goneIds.has(id))
    await mapBounded(idsToDelete, CONCURRENCY, (id) => finishDeletion(deps, id))
  }
  const current = await notedSummaries.current(there, signal)
  const summaries: Summary[] = []
  const others: string[] = []
  for (const [at, id] of there.entries()) {
    const summary = current[at]
    if (summary) summaries.push(summary)
    else others.push(id)
  }
  await removeAllLeft(deps, others, signal)
  // Sorted by age, as the server's own ids are: the next start then finds them in list order.
  const readSummaries = await mapBounded(others.sort(), CONCURRENCY, (id) =>
    readSummary(deps, id, notedSummaries.last(id), signal),
  )
  return { summaries: [...summaries, ...readSummaries.filter((summary) => summary !== undefined)], deletedKeys }
}

/** Does what precedes all requests where other instances have conversations, too: their number does not delay it. */
export async function beginShared(deps: StartUpDeps): Promise<void> {
  const { storage } = deps
  const exists = (id: string) => storage.conversation(id).exists()
  await endLeftProcesses(deps, async (id) => (await exists(id)) || (await storage.deletions.has(id)))
  await storage.instances?.endFormer()
}

/** Returns the state of a conversation whose log cannot be read: it exists, with status `error`. */
export function damagedState(id: string, createdAt: string): State {
  return { ...EMPTY_STATE, id, status: 'error', createdAt, updatedAt: createdAt }
}

/** End these first: leftover processes would run in parallel with the conversation, and nobody could stop them. */
async function endLeftProcesses({ endOrphans, logger }: StartUpDeps, isOurs: IsOurs): Promise<void> {
  for (const id of await endOrphans(isOurs))
    logger.warn({ conversation_id: id }, 'processes that an earlier server had left were ended')
}

/** More conversations than are open at a time: they were not changed by a server, but restored from a backup. */
const MAX_OPENED = 10_000

/** What a killed server worked on has a log that was written since, an unfinished run, or due deliveries. */
async function removeAllLeft(deps: StartUpDeps, changedIds: readonly string[], signal: AbortSignal): Promise<void> {
  const { active, due } = deps.storage
  const openedIds = changedIds.length > MAX_OPENED ? [] : changedIds
  const ids = new Set([...openedIds, ...(await active.ids()), ...(await due.ids())])
  await mapBounded([...ids], CONCURRENCY, async (id) => {
    signal.throwIfAborted()
    await removeLeft(deps, id)
  })
}

/** Never rejects. */
export async function removeLeft({ removeLeft: remove, logger }: StartUpDeps, id: string): Promise<void> {
  await remove(id).catch((error: unknown) => {
    logger.warn({ err: error, conversation_id: id }, 'temporary files of an earlier server could not be removed')
  })
}

/** Finishes a deletion. A file that cannot be removed does not keep the server from starting. */
export async function finishDeletion(deps: StartUpDeps, id: string): Promise<void> {
  try {
    const { storage, workdirBase } = deps
    await removeData({ storage, workdirBase }, id, await stateOnDisk(storage, id))
  } catch (error) {
    deps.logger.error(
      { err: error, conversation_id: id },
      'the remaining data of a deleted conversation could not be removed',
    )
  }
}

/**
 * Summarises the current log, and stores the summary for the next start. Returns undefined if there is no conversation.
 * `last`: the summary that was stored before the log changed.
 */
export async function readSummary(
  deps: StartUpDeps,
  id: string,
  last: Summary | undefined,
  signal: AbortSignal,
): Promise<Summary | undefined> {
  const { storage, logger } = deps
  signal.throwIfAborted()
  // Take the fingerprint before reading the log: the next start then notices changes made meanwhile.
  const note = storage.summaries.noteFor(id)
  const listedConversation = await storage.shared?.listed(id)
  if (listedConversation?.summary) return listedConversation.summary
  const notedState = await readSnapshot(storage, id)
  try {
    const state = await currentState(deps, id, notedState)
    if (state) {
      const summary = storage.shared ? sharedSummary(state) : summarize(state)
      note(summary)
      return summary
    }
    // A conversation without a first event was never seen by a client: a crash interrupted its creation.
    if (!notedState && !last) return await sweep(deps, id)
    throw new Problem('conversation_damaged', `The log of conversation ${id} is empty.`)
  } catch (error) {
    logger.error({ err: error, conversation_id: id }, 'this conversation cannot be read')
    const foundSummary = notedState && summarize(notedState)
    const summary = foundSummary ?? last ?? summarize(damagedState(id, await storage.conversation(id).createdAt()))
    return { ...summary, status: 'error', lastSeq: 0 }
  }
}

/**
 * Reads `meta.json` if it is as new as the log, otherwise the log. Returns undefined if the log has no event; throws if it
 * is unreadable.
 */
async function currentState(
  { storage }: Pick<StartUpDeps, 'storage'>,
  id: string,
  notedState: State | undefined,
): Promise<State | undefined> {
  if (storage.shared) return await readSharedState(storage, id, notedState).catch(undefinedIfGone)
  const ending = notedState && (await storage.conversation(id).lastEvent())
  if (notedState && ending?.seq === notedState.lastSeq && ending.timestamp === notedState.updatedAt) return notedState
  const state = await readState(storage.conversation(id), notedState).catch(undefinedIfGone)
  // It is only a cache.
  if (state && !isShort(state.lastSeq)) await writeSnapshot(storage, state).catch(() => {})
  return state
}

function undefinedIfGone(error: unknown): undefined {
  if (!(error instanceof Problem) || error.code !== 'conversation_not_found') throw error
}

/** Removes the remains of an interrupted creation; the workdir only if it is empty or an unfinished copy. */
export async function sweep({ storage, workdirBase }: StartUpDeps, id: string): Promise<undefined> {
  const workdir = join(workdirBase, id)
  const own = storage.conversation(id)
  // Another instance may be creating it now.
  if (storage.shared && Date.now() - Date.parse(await own.createdAt()) < CREATION_MS) return undefined
  if (await own.isCopying()) await removeTree(workdir)
  await own.remove()
  await rmdir(workdir).catch(() => {})
  return undefined
}
