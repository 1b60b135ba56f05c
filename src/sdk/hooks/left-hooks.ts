/** Removes the hooks of programs that ended without doing so: each of their calls would wait for nobody, and fail. */
import { AgentServerError } from '../../client/agent-server-error.ts'
import type { ConversationHandle } from '../../client/conversation/conversation-handle.ts'

/** The names of queries begin with it. Those of other clients are theirs to remove. */
export const QUERY_CLIENT = 'query-'

/** `clients`: those of the session. A key that may not remove hooks leaves them. */
export async function removeLeftHooks(
  { clientHooks }: ConversationHandle,
  clients: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  if (!clients.some((client) => client.startsWith(QUERY_CLIENT))) return
  for await (const { client, connected } of clientHooks.list({ signal }))
    if (client.startsWith(QUERY_CLIENT) && !connected)
      await clientHooks.remove(client, { signal }).catch((error: unknown) => {
        if (!(error instanceof AgentServerError) || error.code !== 'forbidden') throw error
      })
}
