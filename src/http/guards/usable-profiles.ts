/** Says which profiles a list shows to a key: those that it may use. */
import type { Access } from '../../access/access.ts'
import type { ConversationManager } from '../../conversations/manager.ts'
import type { SeesProfile } from '../../conversations/profiles/profiles.ts'

/** A key that is limited to certain conversations makes none: it uses the profiles that these were made from. */
export async function usableProfiles(
  manager: Pick<ConversationManager, 'ownerOf' | 'upToDate'>,
  access: Access,
): Promise<SeesProfile> {
  const { conversations, profiles } = access.limits
  if (conversations) await manager.upToDate()
  const seenConversations = [...(conversations ?? [])].flatMap((id) => {
    const owner = manager.ownerOf(id)
    return owner && access.sees(owner) ? [owner] : []
  })
  // One that was created without a profile has the settings of the server, as `default` has them at first.
  const names = conversations && new Set(seenConversations.map(({ profile = 'default' }) => profile))
  return (name) => (profiles?.has(name) ?? true) && (names?.has(name) ?? true)
}
