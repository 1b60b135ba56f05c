/** The search of the server, as somebody types. */
import type { FoundEvent } from '../../contract/search.ts'
import { AgentServerError } from '../../client/client.ts'
import { addressOf } from './route.ts'
import { client } from './session.ts'

/** The pause after the last key, milliseconds: each search reads what was stored since the one before. */
const PAUSE_MS = 250

/** A server that has not read all events after some seconds is asked so often: it continues to read. */
const MOST_REQUESTS = 20

/** Returns nothing for a server that has no search. */
export async function findEvents(q: string, limit: number, signal: AbortSignal): Promise<readonly FoundEvent[]> {
  if (q.trim() === '') return []
  try {
    for (let request = 1; ; request++) {
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
      signal.throwIfAborted()
      const { items, is_complete } = await client().conversations.search({ q, limit }, { signal })
      if (items.length > 0 || is_complete || request === MOST_REQUESTS) return items
    }
  } catch (error) {
    if (error instanceof AgentServerError && error.code === 'search_off') return []
    throw error
  }
}

export const addressOfFound = ({ conversation_id, seq }: FoundEvent): string =>
  `${addressOf('c', conversation_id)}?seq=${seq}`
