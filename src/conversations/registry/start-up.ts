/** What a start of the server finds on disk: which conversations there are, and what a stop left half done of their making and deleting. */
import { rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { Problem } from '../../contract/problem.ts'
import { lazily } from '../../lib/lazily.ts'
import { mapBounded } from '../../lib/map-bounded.ts'
import { removeTree } from '../../files/trees/remove-tree.ts'
import type { Logger } from '../../telemetry/logger.ts'
import type { CreationKey, Storage, Summary } from '../../storage/storage.ts'
import { KEY_LIFETIME_MS } from '../idempotency/idempotency.ts'
import { summarize } from './listing.ts'
import { removeData, stateOnDisk } from './removal.ts'
import { readSnapshot, writeSnapshot } from './snapshot.ts'
import { readState } from '../state/read-state.ts'
import type { State } from '../state/state.ts'
import { EMPTY_STATE } from '../state/state.ts'

export type StartUpDeps = {
  readonly storage: Storage
  readonly workdirBase: string
  /** Ends the processes that an earlier server has left of those conversations; returns the ids of those that had some. */
  readonly endOrphans: (isOurs: (conversationId: string) => boolean) => Promise<readonly string[]>
  readonly logger: Logger
}

export type FoundConversations = {
  readonly summaries: readonly Summary[]
  /** Of conversations that are gone, and whose key still counts. */
  readonly deletedKeys: readonly CreationKey[]
}

/** Files of that many conversations are read at the same time. */
const CONCURRENCY = 64

/**
 * Reads a conversation's own files only where its log is not the one that was noted. Opens no log but those that end
 * after their `meta.json`. Throws the reason of a signal that is aborted.
 */
export async function scanDataDirectory(deps: StartUpDeps, signal: AbortSignal): Promise<FoundConversations> {
  const { storage } = deps
  const [ids, noted, deletedIds, deletedKeys] = await Promise.all([
    storage.ids(),
    storage.summaries.read(),
    storage.deletions.ids(),
    storage.deletions.keys(Date.now() - KEY_LIFETIME_MS),
  ])
  const gone = new Set(deletedIds)
  await endLeftProcesses(deps, [...ids, ...gone])
  const there = gone.size === 0 ? ids : ids.filter((id) => !gone.has(id))
  if (gone.size > 0) {
    const deleted = ids.filter((id) => gone.has(id))
    await mapBounded(deleted, CONCURRENCY, (id) => finishDeletion(deps, id))
  }
  const current = await noted.current(there, signal)
  const summaries: Summary[] = []
  const others: string[] = []
  for (const [at, id] of there.entries()) {
    const summary = current[at]
    if (summary) summaries.push(summary)
    else others.push(id)
  }
  // By age, as ids of the server's own are: the next start then finds them in the order of lists.
  const read = await mapBounded(others.sort(), CONCURRENCY, (id) => readSummary(deps, id, signal))
  return { summaries: [...summaries, ...read.filter((summary) => summary !== undefined)], deletedKeys }
}

/** Of a conversation whose log cannot be read: that it is there, and that something is wrong with it. */
export function damagedState(id: string, createdAt: string): State {
  return { ...EMPTY_STATE, id, status: 'error', createdAt, updatedAt: createdAt }
}

/** Before anything else is done with their conversations: they would work beside it, and nobody could stop them. */
async function endLeftProcesses({ endOrphans, logger }: StartUpDeps, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  // Nearly always, no process asks whose it is.
  const known = lazily(() => new Set(ids))
  const had = await endOrphans((id) => known().has(id))
  for (const id of had) logger.warn({ conversation_id: id }, 'processes that an earlier server had left were ended')
}

/** That what is left cannot be removed does not keep the server from starting. */
async function finishDeletion(deps: StartUpDeps, id: string): Promise<void> {
  try {
    const { storage, workdirBase } = deps
    await removeData({ storage, workdirBase }, id, await stateOnDisk(storage, id))
  } catch (error) {
    deps.logger.error(
      { err: error, conversation_id: id },
      'what is left of a deleted conversation could not be removed',
    )
  }
}

/** Of what the log holds now; noted for the next start. Undefined when there is no summary. */
async function readSummary(deps: StartUpDeps, id: string, signal: AbortSignal): Promise<Summary | undefined> {
  const { storage, logger } = deps
  signal.throwIfAborted()
  // Before the log is read: what is changed meanwhile is then found out by the next start.
  const note = storage.summaries.noteFor(id)
  const noted = await readSnapshot(storage, id)
  try {
    const state = await currentState(deps, id, noted)
    // Without a first event nobody ever saw it: a create that a crash cut off.
    if (!state) return await sweep(deps, id)
    const summary = summarize(state)
    note(summary)
    return summary
  } catch (error) {
    logger.error({ err: error, conversation_id: id }, 'this conversation cannot be read')
    const state = noted ?? damagedState(id, await storage.conversation(id).createdAt())
    return { ...summarize(state), status: 'error', lastSeq: 0 }
  }
}

/**
 * From `meta.json` where the log ends as it says, else from the log. Undefined when neither has a first event; throws
 * when only the log does not.
 */
async function currentState(
  { storage }: StartUpDeps,
  id: string,
  noted: State | undefined,
): Promise<State | undefined> {
  const ending = noted && storage.conversation(id).lastEvent()
  if (noted && ending?.seq === noted.lastSeq && ending.timestamp === noted.updatedAt) return noted
  const state = await readState(storage.conversation(id), noted).catch((error: unknown) => {
    if (!noted && error instanceof Problem && error.code === 'conversation_not_found') return undefined
    throw error
  })
  if (state) await writeSnapshot(storage, state).catch(() => {}) // it is only a cache
  if (!state && noted) throw new Problem('conversation_damaged', `The log of conversation ${id} is empty.`)
  return state
}

/** What is left of a create that a crash cut off; the workdir goes only if it is empty, as one nobody worked in is, or a copy that was begun. */
async function sweep({ storage, workdirBase }: StartUpDeps, id: string): Promise<undefined> {
  const workdir = join(workdirBase, id)
  const own = storage.conversation(id)
  if (await own.isCopying()) await removeTree(workdir)
  await own.remove()
  await rmdir(workdir).catch(() => {})
  return undefined
}
