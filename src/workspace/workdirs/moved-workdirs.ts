/**
 * Finds the directories that the server made for conversations in another base than today's: the data directory was
 * moved, copied or restored elsewhere, and logs have full paths.
 */
import { realpath } from 'node:fs/promises'
import { basename, join, relative, sep } from 'node:path'
import { z } from 'zod'
import type { EventLog } from '../../events/event-log.ts'
import { withoutUndefined } from '../../lib/without-undefined.ts'
import type { Logger } from '../../telemetry/logger.ts'
import type { Storage } from '../../storage/storage.ts'
import type { Settings } from '../../state/settings.ts'

export type WorkdirDeps = { readonly storage: Storage; readonly workdirBase: string }

type MovingDeps = Pick<WorkdirDeps, 'storage'> & {
  readonly workspace: { readonly workdirRules: { readonly base: string } }
  readonly logger: Logger
}

type Workdirs = Pick<Settings, 'workdir' | 'made_workdir'>

/**
 * Stores the new paths of a conversation that nobody uses yet. If they cannot be stored now, the conversation can be
 * read, and the next opening tries again.
 */
export async function followMoved(
  { storage, workspace, logger }: MovingDeps,
  { id, log, settings }: { readonly id: string; readonly log: EventLog; readonly settings: Settings },
): Promise<void> {
  try {
    const changes = await findMoved({ storage, workdirBase: workspace.workdirRules.base }, id, settings)
    if (Object.keys(changes).length === 0) return
    await log.append([{ type: 'ConfigUpdate', source: 'environment', changes }], { isForClient: true })
    logger.info({ conversation_id: id, ...changes }, 'the workdir of this conversation was moved')
  } catch (error) {
    logger.warn({ err: error, conversation_id: id }, 'the moved workdir of this conversation could not be stored')
  }
}

/**
 * Returns the paths that are different now; empty if none is. The directory in today's base counts, even if there is
 * still one at the former path: that belongs to the original of a copy.
 */
export async function findMoved(deps: WorkdirDeps, id: string, settings: Workdirs): Promise<Partial<Workdirs>> {
  const base = await realpath(deps.workdirBase).catch(() => undefined)
  const find = async (path: string | undefined) =>
    path === undefined || base === undefined || path.startsWith(base + sep)
      ? undefined
      : await findInBase({ ...deps, base, id }, path)
  return withoutUndefined({ workdir: await find(settings.workdir), made_workdir: await find(settings.made_workdir) })
}

type Place = WorkdirDeps & { readonly base: string; readonly id: string }

async function findInBase({ storage, base, id }: Place, path: string): Promise<string | undefined> {
  for (const ownDirectory of directoriesOfIds(path)) {
    const now = join(base, basename(ownDirectory))
    const movedPath = join(now, relative(ownDirectory, path))
    const isThere = (await realpath(movedPath).catch(() => undefined)) === movedPath
    const { sharedWorkdirs } = storage
    const isOurs =
      basename(ownDirectory) === id ||
      (await sharedWorkdirs.has(ownDirectory, id)) ||
      (await sharedWorkdirs.has(now, id))
    if (!isThere || !isOurs) continue
    await sharedWorkdirs.move(ownDirectory, now)
    return movedPath
  }
  return undefined
}

/** Returns the directories in the path that are named like a conversation, from the outermost on. */
function directoriesOfIds(path: string): string[] {
  const names = path.split(sep)
  return names.flatMap((name, at) => (z.uuid().safeParse(name).success ? names.slice(0, at + 1).join(sep) : []))
}
