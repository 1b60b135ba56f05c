/** Removes the hooks of programs that ended without doing so: each of their calls would wait for nobody, and fail. */
import { AgentServerError } from '../../client/agent-server-error.ts'
import type { ConversationHandle } from '../../client/conversation/conversation-handle.ts'

/** The names of queries begin with it. Those of other clients are theirs to remove. */
export const QUERY_CLIENT = 'query-'

/** `clients`: those of the session. A key that may not remove hooks leaves them. Returns true if there were some. */
export async function removeLeftHooks(
  { clientHooks }: ConversationHandle,
  clients: readonly string[] = [],
  signal: AbortSignal,
): Promise<boolean> {
  if (!clients.some((client) => client.startsWith(QUERY_CLIENT))) return false
  const all = await clientHooks.list({ signal }).all()
  const left = all.filter(({ client, connected }) => client.startsWith(QUERY_CLIENT) && !connected)
  try {
    for (const { client } of left) await clientHooks.remove(client, { signal })
    return left.length > 0
  } catch (error) {
    if (error instanceof AgentServerError && error.code === 'forbidden') return false
    throw error
  }
}
