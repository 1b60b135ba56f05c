/** What goes when a conversation goes: its workdir if the server made it, its marks, its data. */
import type { ConversationStorage } from '../dependencies.ts'
import type { GuestDeps } from '../workdirs/guest-workdirs.ts'
import { leaveAsGuest } from '../workdirs/guest-workdirs.ts'
import { readState } from '../state/read-state.ts'
import type { State } from '../state/state.ts'

/** The state of a conversation that is not open. Undefined when neither `meta.json` nor the log has it: then it is not known whose the workdir is, and it stays. */
export async function stateOnDisk(
  { catalog, store }: Pick<ConversationStorage, 'catalog' | 'store'>,
  id: string,
): Promise<State | undefined> {
  return (await catalog.read(id)) ?? (await readState(store, id).catch(() => undefined))
}

/** The log last: until it is gone, a start of the server knows that there is something left to remove. */
export async function removeData(deps: GuestDeps, id: string, state: State | undefined): Promise<void> {
  const { catalog } = deps
  const workdir = state?.settings.made_workdir
  if (workdir !== undefined) await catalog.sharedWorkdirs.leave(workdir, id)
  if (state) await leaveAsGuest(deps, state.settings.workdir, id)
  await catalog.unmarkActive(id)
  await catalog.unmarkDue(id)
  await catalog.remove(id)
}
