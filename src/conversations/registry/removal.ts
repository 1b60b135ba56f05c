/** What goes when a conversation goes: its workdir if the server made it, its marks, its data. */
import type { Storage } from '../../storage/storage.ts'
import type { GuestDeps } from '../workdirs/guest-workdirs.ts'
import { leaveAsGuest } from '../workdirs/guest-workdirs.ts'
import { leaveWorkdir } from '../workdirs/shared-workdirs.ts'
import { readSnapshot } from './snapshot.ts'
import { readState } from '../state/read-state.ts'
import type { State } from '../state/state.ts'

/** The state of a conversation that is not open. Undefined when neither `meta.json` nor the log has it: then it is not known whose the workdir is, and it stays. */
export async function stateOnDisk(storage: Storage, id: string): Promise<State | undefined> {
  return (await readSnapshot(storage, id)) ?? (await readState(storage.conversation(id)).catch(() => undefined))
}

/** The log last: until it is gone, a start of the server knows that there is something left to remove. */
export async function removeData(deps: GuestDeps, id: string, state: State | undefined): Promise<void> {
  const { storage } = deps
  const workdir = state?.settings.made_workdir
  if (workdir !== undefined) await leaveWorkdir(storage.sharedWorkdirs, workdir, id)
  if (state) await leaveAsGuest(deps, state.settings.workdir, id)
  await storage.active.clear(id)
  await storage.due.clear(id)
  await storage.conversation(id).remove()
}
