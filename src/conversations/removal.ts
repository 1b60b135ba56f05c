/** What goes when a conversation goes: its workdir if the server made it, its marks, its data. */
import { basename, dirname } from 'node:path'
import { removeTree } from '../lib/remove-tree.ts'
import { codeOf, FileRefusal } from '../workspace/file-refusal.ts'
import { openUnmoved, within } from '../workspace/open-place.ts'
import type { Assembler } from './assembly.ts'
import type { Catalog } from './catalog.ts'
import type { State } from './state.ts'

/** Undefined when neither `meta.json` nor the log tells it: then it is not known whose the workdir is, and it stays. */
export async function stateOnDisk(
  { catalog, assembler }: { readonly catalog: Catalog; readonly assembler: Assembler },
  id: string,
): Promise<State | undefined> {
  return (await catalog.read(id)) ?? (await assembler.readState(id).catch(() => undefined))
}

/** The log last: until it is gone, a start of the server knows that there is something left to remove. */
export async function removeData(catalog: Catalog, id: string, state: State | undefined): Promise<void> {
  if (state?.settings.made_workdir !== undefined) await removeWorkdir(state.settings.made_workdir)
  await catalog.unmarkActive(id)
  await catalog.unmarkDue(id)
  await catalog.remove(id)
}

/**
 * Not by its path: one that lies in another conversation's workdir can have a link above it by now, and what that leads
 * to is nobody's to remove. Then it is not there any more.
 */
async function removeWorkdir(path: string): Promise<void> {
  try {
    await using parent = await openUnmoved(dirname(path))
    await removeTree(within(parent, basename(path)))
  } catch (error) {
    if (!(error instanceof FileRefusal) && codeOf(error) !== 'ENOENT' && codeOf(error) !== 'ENOTDIR') throw error
  }
}
