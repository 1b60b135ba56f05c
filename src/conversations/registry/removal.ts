/** Removes the data of a deleted conversation: its workdir if the server created it, its marks, its data. */
import type { Storage, Summary } from '../../storage/storage.ts'
import { leaveAsGuest } from '../../workspace/workdirs/guest-workdirs.ts'
import type { WorkdirDeps } from '../../workspace/workdirs/moved-workdirs.ts'
import { findMoved } from '../../workspace/workdirs/moved-workdirs.ts'
import { leaveWorkdir } from '../../workspace/workdirs/shared-workdirs.ts'
import type { IsOurs } from '../../shell/processes/marked-processes.ts'
import { readSnapshot } from '../../state/snapshot.ts'
import { readState } from './read-state.ts'
import type { State } from '../../state/state.ts'
import type { Conversation } from '../conversation.ts'
import type { ConversationDeps } from '../dependencies.ts'

type RemovalDeps = {
  readonly conversations: Pick<ConversationDeps, 'logger' | 'storage' | 'workspace'>
  readonly endOrphans: (isOurs: IsOurs) => Promise<unknown>
  readonly usage: { readonly countLast: (summary: Summary) => Promise<void> }
  readonly onDeleted: (conversation: Pick<Summary, 'id' | 'userId' | 'profile'>) => void
}

/** Removes everything of a conversation that nobody can find any more. `opened`: it was open or being opened. */
export async function removeConversation(
  { conversations, endOrphans, onDeleted, usage }: RemovalDeps,
  summary: Summary,
  openedConversation: Promise<Conversation> | undefined,
): Promise<void> {
  const { id, userId, profile } = summary
  const { logger, storage, workspace } = conversations
  const conversation = await openedConversation?.catch((error: unknown) => {
    logger.warn({ err: error, conversation_id: id }, 'deleting what could not be opened')
    return undefined
  })
  const state = conversation?.state ?? (await stateOnDisk(storage, id))
  await conversation?.dispose('deleted').catch((error: unknown) => {
    logger.error({ err: error, conversation_id: id }, 'a deleted conversation could not be closed')
  })
  onDeleted({ id, userId, profile })
  // An opened conversation ends its own processes; those of the others were ended when the server started.
  if (openedConversation && !conversation) await endOrphans((each) => each === id)
  if (Object.keys(state?.usage ?? {}).length > 0)
    await usage.countLast(summary).catch((error: unknown) => {
      logger.warn({ err: error, conversation_id: id }, 'the costs of a deleted conversation could not be stored')
    })
  await removeData({ storage, workdirBase: workspace.workdirRules.base }, id, state)
}

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
    const { workdir, made_workdir: createdWorkdir } = {
      ...state.settings,
      ...(await findMoved(deps, id, state.settings)),
    }
    if (createdWorkdir !== undefined) await leaveWorkdir(storage.sharedWorkdirs, createdWorkdir, id)
    await leaveAsGuest(deps, workdir, id)
  }
  await storage.active.clear(id)
  await storage.due.clear(id)
  await storage.search.forget([id]).catch(() => {}) // the next search removes what is left
  await storage.conversation(id).remove()
}
