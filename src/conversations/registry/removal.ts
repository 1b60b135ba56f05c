/** Removes the data of a deleted conversation: its workdir if the server created it, its marks, its data. */
import type { Storage } from '../../storage/storage.ts'
import { leaveAsGuest } from '../../workspace/workdirs/guest-workdirs.ts'
import type { WorkdirDeps } from '../../workspace/workdirs/moved-workdirs.ts'
import { findMoved } from '../../workspace/workdirs/moved-workdirs.ts'
import { leaveWorkdir } from '../../workspace/workdirs/shared-workdirs.ts'
import { readSnapshot } from '../../state/snapshot.ts'
import { readState } from './read-state.ts'
import type { State } from '../../state/state.ts'

/**
 * Returns the state of a conversation that is not open. Undefined if neither `meta.json` nor the log has it: the owner
 * of the workdir is unknown then, and the workdir stays.
 */
export async function stateOnDisk(storage: Storage, id: string): Promise<State | undefined> {
  return (await readSnapshot(storage, id)) ?? (await readState(storage.conversation(id)).catch(() => undefined))
}

/** Removes the log last: until it is gone, the next start of the server knows that something is left to remove. */
export async function removeData(deps: WorkdirDeps, id: string, state: State | undefined): Promise<void> {
  const { storage } = deps
  if (state) {
    const { workdir, made_workdir: made } = { ...state.settings, ...(await findMoved(deps, id, state.settings)) }
    if (made !== undefined) await leaveWorkdir(storage.sharedWorkdirs, made, id)
    await leaveAsGuest(deps, workdir, id)
  }
  await storage.active.clear(id)
  await storage.due.clear(id)
  await storage.conversation(id).remove()
}
