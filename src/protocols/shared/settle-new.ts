import type { Access } from '../../access/access.ts'
import type { CreateConversation } from '../../contract/conversation.ts'
import type { Event } from '../../contract/events/event.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import { findForkedFrom } from '../../conversations/forked-log.ts'
import type { ConversationManager } from '../../conversations/manager.ts'
import { createOrFind, endTentative } from '../../http/guards/create-or-find.ts'
import { beginAlone } from './begin-alone.ts'
import { deleteIf } from './delete-if.ts'
import type { GatewayDeps } from './gateway-deps.ts'

/** What a conversation has before somebody uses it. */
const BEFORE_USE: ReadonlySet<string> = new Set(['SystemInit', 'HookEvent', 'McpServerUpdate'])
/** What a fork has besides: the ends of what belongs to the original. */
const AFTER_FORK: ReadonlySet<string> = new Set(['ForkedFrom', 'ToolResult', 'RequestClosed', 'TaskUpdate', 'Result'])

/**
 * Opens the conversation of a client that chooses its id, or makes it tentatively: `settleNew` must follow for a new one. Throws a
 * `Problem`.
 */
export async function openTentative(
  { manager }: Pick<GatewayDeps, 'manager'>,
  access: Access,
  wish: CreateConversation,
): Promise<{ readonly conversation: Conversation; readonly isNew: boolean }> {
  const { view, isNew } = await createOrFind(manager, access, wish, { isTentative: true })
  try {
    return { conversation: await manager.open(view.id), isNew }
  } catch (error) {
    endTentative(view.id)
    throw error
  }
}

/**
 * Call it for a conversation that a request has made tentatively. Deletes it if its first message was refused, unless another
 * request has found or used it.
 */
export async function settleNew(
  { manager }: Pick<GatewayDeps, 'manager'>,
  { id, log }: Conversation,
  { hasBegun }: { readonly hasBegun: boolean },
): Promise<void> {
  if (!endTentative(id) || hasBegun) return
  const release = beginAlone(id)
  if (!release) return
  try {
    await deleteUnused(manager, { id, log })
  } finally {
    release()
  }
}

/**
 * Deletes a conversation or a fork whose first message was refused, unless somebody uses it: its id is in lists. The caller has
 * begun alone.
 */
export async function deleteUnused(
  manager: Pick<ConversationManager, 'delete'>,
  conversation: Pick<Conversation, 'id' | 'log'>,
  options?: { readonly freesKey: true },
): Promise<void> {
  await deleteIf(manager, conversation, () => isUnused(conversation), options)
}

async function isUnused({ log }: Pick<Conversation, 'log'>): Promise<boolean> {
  const fork = await findForkedFrom(log)
  const { events, scannedTo } = await log.read({ afterSeq: fork ? fork.seq - 1 : 0, limit: 1000 })
  const withdrawn = new Set(
    events.flatMap(({ event }) => (event.type === 'MessageWithdrawn' ? [event.message_seq] : [])),
  )
  const isUse = (event: Event) =>
    !BEFORE_USE.has(event.type) &&
    !(event.type === 'MessageWithdrawn' || withdrawn.has(event.seq)) &&
    !(fork && (AFTER_FORK.has(event.type) || (event.type === 'StatusUpdate' && event.reason === 'forked')))
  return scannedTo === undefined && !events.some(({ event }) => isUse(event))
}
