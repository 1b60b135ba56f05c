/**
 * A workdir inside the directory of another conversation, by `workdir: "<its id>/…"`. That directory is kept until all
 * of those conversations are deleted, in any order.
 */
import { realpath } from 'node:fs/promises'
import { basename, join, relative, sep } from 'node:path'
import { z } from 'zod'
import { readAtRest } from '../../state/snapshot.ts'
import type { State } from '../../state/state.ts'
import type { WorkdirDeps } from './moved-workdirs.ts'
import { findMoved } from './moved-workdirs.ts'
import { leaveIfShared } from './shared-workdirs.ts'

/** Records durably that the conversation works there, if it does. `workdir` is a real path. */
export async function enterAsGuest(deps: WorkdirDeps, workdir: string, id: string): Promise<void> {
  const { storage, workdirBase } = deps
  const ownDirectory = await madeDirectoryOf(workdirBase, workdir)
  const owner = ownDirectory && basename(ownDirectory)
  if (ownDirectory === undefined || owner === undefined || owner === id) return
  const state = await readAtRest(storage, owner, 0)
  const isOwned = state ? (await madeFor(deps, state)) === ownDirectory : await storage.conversation(owner).exists()
  if (isOwned) await storage.sharedWorkdirs.add(ownDirectory, [owner, id])
  // The owner is deleted; others still work there.
  else if (await storage.sharedWorkdirs.isShared(ownDirectory)) await storage.sharedWorkdirs.add(ownDirectory, [id])
}

/** An owner that was not opened since its workdir was moved still has the former path. */
async function madeFor(deps: WorkdirDeps, { id, settings }: State): Promise<string | undefined> {
  const { made_workdir = settings.made_workdir } = await findMoved(deps, id, settings)
  return made_workdir
}

/**
 * Removes the directory with the last of its guests. Does nothing if the conversation is not a guest, or if its workdir
 * of `now` is in the same directory.
 */
export async function leaveAsGuest(
  { storage, workdirBase }: WorkdirDeps,
  workdir: string,
  id: string,
  now?: string,
): Promise<void> {
  const ownDirectory = await madeDirectoryOf(workdirBase, workdir)
  const stays = now !== undefined && ownDirectory === (await madeDirectoryOf(workdirBase, now))
  if (ownDirectory !== undefined && !stays) await leaveIfShared(storage.sharedWorkdirs, ownDirectory, id)
}

/** Returns the directory directly in the base that is named after a conversation and contains the workdir. */
async function madeDirectoryOf(workdirBase: string, workdir: string): Promise<string | undefined> {
  const base = await realpath(workdirBase).catch(() => undefined)
  if (base === undefined) return undefined
  const [name = ''] = relative(base, workdir).split(sep)
  return z.uuid().safeParse(name).success ? join(base, name) : undefined
}
