/** Removes the hooks of programs that ended without doing so: each of their calls would wait for nobody, and fail. */
import { setTimeout as sleep } from 'node:timers/promises'
import { AgentServerError } from '../../client/request/agent-server-error.ts'
import type { ConversationHandle } from '../../client/conversation/conversation-handle.ts'

/** The names of queries begin with it. Those of other clients are theirs to remove. */
export const QUERY_CLIENT = 'query-'

/** The time that a program has to connect after it has registered its hooks or lost its stream; in milliseconds. */
const CONNECT_MS = 1000

/** `clients`: those of the session. A key that may not remove hooks leaves them. Returns true if there were some. */
export async function removeLeftHooks(
  { clientHooks }: ConversationHandle,
  clients: readonly string[] = [],
  signal: AbortSignal,
): Promise<boolean> {
  if (!clients.some((client) => client.startsWith(QUERY_CLIENT))) return false
  const away = await namesAway(clientHooks, signal)
  if (away.size === 0) return false
  await sleep(CONNECT_MS, undefined, { signal })
  const leftClients = [...(await namesAway(clientHooks, signal))].filter((client) => away.has(client))
  try {
    for (const client of leftClients) await clientHooks.remove(client, { signal })
    return leftClients.length > 0
  } catch (error) {
    if (error instanceof AgentServerError && error.code === 'forbidden') return false
    throw error
  }
}

async function namesAway(clientHooks: ConversationHandle['clientHooks'], signal: AbortSignal): Promise<Set<string>> {
  const all = await clientHooks.list({ signal }).all()
  return new Set(
    all.filter(({ client, connected }) => client.startsWith(QUERY_CLIENT) && !connected).map(({ client }) => client),
  )
}
