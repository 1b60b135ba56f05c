import type { Access } from '../../access/access.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import { findExternal } from '../../conversations/profiles/external-ids.ts'
import type { GatewayDeps } from './gateway-deps.ts'

/** Returns the conversation with this `external_id`, in the space of the user of the key; undefined if the key sees none. */
export async function findThread(
  { manager }: GatewayDeps,
  access: Access,
  externalId: string,
): Promise<Conversation | undefined> {
  const id = await findExternal(manager, { external_id: externalId, user_id: access.limits.userId })
  const owner = id === undefined ? undefined : manager.ownerOf(id)
  return id !== undefined && owner && access.sees(owner) ? await manager.open(id) : undefined
}
