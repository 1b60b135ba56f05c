/** Creates a conversation for a client, or finds the one with its `external_id`. */
import type { Access } from '../../access/access.ts'
import type { ConversationView, CreateConversation } from '../../contract/conversation.ts'
import { Problem } from '../../contract/problem.ts'
import type { ConversationManager } from '../../conversations/manager.ts'
import type { Idempotency } from '../../state/idempotency.ts'
import { hidingDeleted, ofProject } from './limited-requests.ts'

/** New conversations that go again if their first message is refused, while no other request has found them. */
const tentative = new Set<string>()

/** True if the conversation was tentative until now. */
export const endTentative = (id: string): boolean => tentative.delete(id)

type CreateOptions = {
  readonly idempotency?: Idempotency | undefined
  /** The caller calls `endTentative` for a new one. */
  readonly isTentative?: boolean
}

/** `wanted` is what `createAs` has returned. */
export async function createOrFind(
  manager: ConversationManager,
  access: Access,
  wish: CreateConversation,
  { idempotency, isTentative = false }: CreateOptions = {},
): Promise<{ readonly view: ConversationView; readonly isNew: boolean }> {
  const create = (request: CreateConversation) => manager.create(request, idempotency, ofProject(access))
  const { external_id } = wish
  if (external_id === undefined) return { view: await hidingDeleted(access, () => create(wish)), isNew: true }
  const { findOrCreate } = await import('../../conversations/profiles/external-ids.ts')
  const conversation = await findOrCreate(manager, { ...wish, external_id }, async (id) => {
    const view = await create({ ...wish, id })
    if (isTentative) tentative.add(id)
    return view
  })
  if (!conversation.isNew) endTentative(conversation.view.id)
  const owner = manager.ownerOf(conversation.view.id)
  // Another profile has other tools and other people.
  const isMeant = conversation.isNew || conversation.view.profile === wish.profile
  if (owner && access.sees(owner) && isMeant) return conversation
  throw otherProfile()
}

/** The error for a conversation that was created with another profile than the request names. */
export const otherProfile = (): Problem =>
  new Problem('conversation_exists', 'This external_id cannot be used with this profile. Choose another one.')
