import type { Conversation } from '../../conversations/conversation.ts'
import type { GatewayDeps } from './gateway-deps.ts'
import { beginAlone } from './begin-alone.ts'

const MESSAGES: ReadonlySet<string> = new Set(['UserMessage'])

/** Deletes the conversation that a request has made, and whose first message was refused, unless another request uses it. */
export async function deleteUnbegun({ manager }: GatewayDeps, { id, log }: Conversation): Promise<void> {
  const release = beginAlone(id)
  if (!release) return
  try {
    if ((await log.read({ types: MESSAGES, limit: 1 })).events.length === 0) await manager.delete(id)
  } finally {
    release()
  }
}
