/** What goes when a conversation goes: its workdir if the server made it, its marks, its data. */
import type { Assembler } from '../assembly.ts'
import type { Catalog } from './catalog.ts'
import type { GuestDeps } from '../workdirs/guest-workdirs.ts'
import { leaveAsGuest } from '../workdirs/guest-workdirs.ts'
import type { State } from '../state/state.ts'

/** Undefined when neither `meta.json` nor the log tells it: then it is not known whose the workdir is, and it stays. */
export async function stateOnDisk(
  { catalog, assembler }: { readonly catalog: Catalog; readonly assembler: Assembler },
  id: string,
): Promise<State | undefined> {
  return (await catalog.read(id)) ?? (await assembler.readState(id).catch(() => undefined))
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
