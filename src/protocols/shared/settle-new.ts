import type { Conversation } from '../../conversations/conversation.ts'
import { endTentative } from '../../http/guards/create-or-find.ts'
import { beginAlone } from './begin-alone.ts'
import type { GatewayDeps } from './gateway-deps.ts'

/** What a conversation has before somebody uses it. */
const BEFORE_USE: ReadonlySet<string> = new Set(['SystemInit', 'HookEvent', 'McpServerUpdate'])

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
    const { events } = await log.read({ limit: 100 })
    if (events.every(({ event }) => BEFORE_USE.has(event.type))) await manager.delete(id)
  } finally {
    release()
  }
}
