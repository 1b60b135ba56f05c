/** Finds which conversation the thread of a request is, before it is created. */
import type { Access } from '../../access/access.ts'
import { Problem } from '../../contract/problem.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import type { AskedModel } from './models.ts'
import { isOfModel } from './models.ts'
import type { GatewayDeps } from '../shared/gateway-deps.ts'

type ThreadName = { readonly thread: string | undefined; readonly access: Access }

/** Returns the id of the conversation; undefined for a new thread. */
export async function threadId({ manager }: GatewayDeps, { thread, access }: ThreadName): Promise<string | undefined> {
  if (thread === undefined) return undefined
  const { findExternal } = await import('../../conversations/profiles/external-ids.ts')
  const { conversations, userId } = access.limits
  if (!conversations) return await findExternal(manager, { external_id: thread, user_id: userId })
  // Such a key does not say whose conversations it is for.
  await manager.upToDate()
  const owners = [...conversations].flatMap((id) => manager.ownerOf(id) ?? [])
  for (const user_id of new Set(owners.filter((owner) => access.sees(owner)).map((owner) => owner.userId))) {
    const id = await findExternal(manager, { external_id: thread, user_id })
    if (id !== undefined && conversations.has(id)) return id
  }
  return undefined
}

/** Returns the conversation of a key that is limited to some; undefined for any other key. Throws a `Problem` if none of them is this thread. */
export async function limitedThread(
  deps: GatewayDeps,
  named: ThreadName,
  model: AskedModel,
): Promise<Conversation | undefined> {
  const { access } = named
  if (!access.limits.conversations) return undefined
  const id = await threadId(deps, named)
  const owner = id === undefined ? undefined : deps.manager.ownerOf(id)
  const conversation = owner && access.sees(owner) ? await deps.manager.open(owner.id) : undefined
  if (conversation && isOfModel(conversation, model)) return conversation
  throw new Problem(
    'forbidden',
    'This key is limited to certain conversations. Send the external_id of one of them as X-Conversation-Id, and its profile as model.',
  )
}
