/** Finds the conversation that clients which choose ids themselves call a thread or a chat. */
import type { Access } from '../../access/access.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import { findExternal } from '../../conversations/profiles/external-ids.ts'
import type { GatewayDeps } from './gateway-deps.ts'

type Threads = Pick<GatewayDeps, 'manager'>

/**
 * Returns the id of the conversation with this id, which another protocol may have begun, if the key sees it: an `external_id`
 * of somebody else does not hide it. Any other name is an `external_id`, in the space of the user of the key.
 */
export async function findThreadId({ manager }: Threads, access: Access, name: string): Promise<string | undefined> {
  await manager.upToDate()
  const owner = manager.ownerOf(name.toLowerCase())
  if (owner && access.sees(owner)) return owner.id
  return await findExternal(manager, { external_id: name, user_id: access.limits.userId })
}

/** Returns undefined if the key sees no such conversation. */
export async function findThread(deps: Threads, access: Access, name: string): Promise<Conversation | undefined> {
  const id = await findThreadId(deps, access, name)
  const owner = id === undefined ? undefined : deps.manager.ownerOf(id)
  return owner && access.sees(owner) ? await deps.manager.open(owner.id) : undefined
}

/** A conversation that was created without a profile has the settings of the server, as `default` has them at first. */
export const profileOfThread = ({ state }: Conversation): string => state.settings.profile ?? 'default'
