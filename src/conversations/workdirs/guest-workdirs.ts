/**
 * A workdir in the directory that was made for another conversation, by `workdir: "<its id>/…"`. That directory then stays
 * until all of those conversations are gone, whichever is deleted first.
 */
import { realpath } from 'node:fs/promises'
import { basename, join, relative, sep } from 'node:path'
import { z } from 'zod'
import type { Storage } from '../../storage/storage.ts'
import { readSnapshot } from '../registry/snapshot.ts'
import { leaveIfShared } from './shared-workdirs.ts'

export type GuestDeps = { readonly storage: Storage; readonly workdirBase: string }

/** Notes durably that the conversation works there, if it does. `workdir` is a real path. */
export async function enterAsGuest({ storage, workdirBase }: GuestDeps, workdir: string, id: string): Promise<void> {
  const made = await madeDirectoryOf(workdirBase, workdir)
  const owner = made && basename(made)
  if (made === undefined || owner === undefined || owner === id) return
  const state = await readSnapshot(storage, owner)
  const isOwned = state ? state.settings.made_workdir === made : await storage.conversation(owner).exists()
  if (isOwned) await storage.sharedWorkdirs.add(made, [owner, id])
  // Its owner is gone; others are still there.
  else if (await storage.sharedWorkdirs.isShared(made)) await storage.sharedWorkdirs.add(made, [id])
}

/**
 * Removes the directory with the last of its guests. Nothing happens when the conversation is not a guest, or when its
 * workdir of `now` is in the same directory.
 */
export async function leaveAsGuest(
  { storage, workdirBase }: GuestDeps,
  workdir: string,
  id: string,
  now?: string,
): Promise<void> {
  const made = await madeDirectoryOf(workdirBase, workdir)
  const stays = now !== undefined && made === (await madeDirectoryOf(workdirBase, now))
  if (made !== undefined && !stays) await leaveIfShared(storage.sharedWorkdirs, made, id)
}

/** The directory directly in the base that is named for a conversation, with the workdir in it. */
async function madeDirectoryOf(workdirBase: string, workdir: string): Promise<string | undefined> {
  const base = await realpath(workdirBase).catch(() => undefined)
  if (base === undefined) return undefined
  const [name = ''] = relative(base, workdir).split(sep)
  return z.uuid().safeParse(name).success ? join(base, name) : undefined
}
