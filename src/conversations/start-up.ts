/** What a start of the server finds on disk: which conversations there are, and what a stop left half done of their making and deleting. */
import { rmdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Problem } from '../contract/problem.ts'
import { mapBounded } from '../lib/map-bounded.ts'
import { removeTree } from '../lib/remove-tree.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { Assembler } from './assembly.ts'
import type { Catalog } from './catalog.ts'
import type { CreatedKey } from './keyed-creates.ts'
import type { Summary } from './listing.ts'
import { summarize } from './listing.ts'
import { removeData, stateOnDisk } from './removal.ts'
import type { State } from './state.ts'
import { EMPTY_STATE } from './state.ts'

export type StartUpDeps = {
  readonly catalog: Catalog
  readonly assembler: Assembler
  readonly workdirBase: string
  /** Ends the processes that an earlier server has left of those conversations; answers the ids of those that had some. */
  readonly endOrphans: (isOurs: (conversationId: string) => boolean) => Promise<readonly string[]>
  readonly logger: Logger
}

export type Stock = {
  readonly summaries: readonly Summary[]
  /** Of conversations that are gone, and whose key still counts. */
  readonly deletedKeys: readonly CreatedKey[]
}

/** Files of that many conversations are read at the same time. */
const CONCURRENCY = 64

/** Opens no log but those without a `meta.json` that can be read. */
export async function takeStock(deps: StartUpDeps): Promise<Stock> {
  const { catalog } = deps
  const gone = new Set(await catalog.deletedIds())
  const deletedKeys = await catalog.deletedKeys()
  const ids = await catalog.ids()
  await endLeftProcesses(deps, new Set([...ids, ...gone]))
  const [deleted, there] = [ids.filter((id) => gone.has(id)), ids.filter((id) => !gone.has(id))]
  await mapBounded(deleted, CONCURRENCY, (id) => finishDeletion(deps, id))
  const summaries = await mapBounded(there, CONCURRENCY, (id) => summaryOf(deps, id))
  return { summaries: summaries.filter((summary) => summary !== undefined), deletedKeys }
}

/** Of a conversation whose log cannot be read: that it is there, and that something is wrong with it. */
export function damagedState(id: string, createdAt: string): State {
  return { ...EMPTY_STATE, id, status: 'error', createdAt, updatedAt: createdAt }
}

/** Before anything else is done with their conversations: they would work beside it, and nobody could stop them. */
async function endLeftProcesses({ endOrphans, logger }: StartUpDeps, ids: ReadonlySet<string>): Promise<void> {
  if (ids.size === 0) return
  const had = await endOrphans((id) => ids.has(id))
  for (const id of had) logger.warn({ conversation_id: id }, 'processes that an earlier server had left were ended')
}

/** That what is left cannot be removed is no reason not to start. */
async function finishDeletion(deps: StartUpDeps, id: string): Promise<void> {
  try {
    await removeData(deps.catalog, id, await stateOnDisk(deps, id))
  } catch (error) {
    deps.logger.error(
      { err: error, conversation_id: id },
      'what is left of a deleted conversation could not be removed',
    )
  }
}

async function summaryOf(deps: StartUpDeps, id: string): Promise<Summary | undefined> {
  const { catalog, assembler, logger } = deps
  const state = await catalog.read(id)
  if (state) return summarize(state)
  try {
    const folded = await assembler.readState(id)
    // Without a first event it was never told to anyone: a create that a crash cut off.
    if (!folded) return await sweep(deps, id)
    await catalog.write(folded)
    return summarize(folded)
  } catch (error) {
    if (error instanceof Problem && error.code === 'conversation_not_found') return await sweep(deps, id)
    logger.error({ err: error, conversation_id: id }, 'this conversation cannot be read')
    const { birthtime } = await stat(catalog.directoryOf(id))
    return summarize(damagedState(id, birthtime.toISOString()))
  }
}

/** What is left of a create that a crash cut off; the workdir goes only if it is empty, as one nobody worked in is, or a copy that was begun. */
async function sweep({ catalog, workdirBase }: StartUpDeps, id: string): Promise<undefined> {
  const workdir = join(workdirBase, id)
  if (await catalog.isCopying(id)) await removeTree(workdir)
  await catalog.remove(id)
  await rmdir(workdir).catch(() => {})
  return undefined
}
