import { Problem } from '../../contract/problem.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import type { ConversationManager } from '../../conversations/manager.ts'

/** What the conversation does itself may come in between, and so often it is looked at again. */
const ATTEMPTS = 10

/** Deletes the conversation if `isMeant` of all events that it has. Throws `conversation_changed` if it changes without end. */
export async function deleteIf(
  manager: Pick<ConversationManager, 'delete'>,
  { id, log }: Pick<Conversation, 'id' | 'log'>,
  isMeant: () => Promise<boolean>,
  options?: { readonly freesKey: true },
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const lastSeq = log.head
    if (!(await isMeant())) return
    try {
      return await manager.delete(id, { ...options, lastSeq })
    } catch (error) {
      const isChanged = error instanceof Problem && error.code === 'conversation_changed'
      if (!isChanged || attempt === ATTEMPTS) throw error
    }
  }
}
