/** Removes conversations without a thread that outlived their answer: the server stopped before, or no result of a function came. */
import type { ConversationManager } from '../../conversations/manager.ts'
import type { HashBody } from '../../security/body-hash.ts'
import { takeTurn } from '../shared/take-turn.ts'
import { newestIsMarked } from './chat-history.ts'
import { isTemporaryId } from './temporary-id.ts'

/** The result of a function may come this late, in milliseconds. */
const REACHABLE_MS = 24 * 60 * 60 * 1000
const INTERVAL_MS = 60 * 60 * 1000
const PAGE = 100

type Manager = Pick<ConversationManager, 'list' | 'open' | 'delete'>

/** When each manager was asked last. */
const removedAt = new WeakMap<Manager, number>()

/** Does nothing within an hour of the call before. Conversations that cannot be removed now are reported, and tried again later. */
export async function removeLeftovers(
  manager: Manager,
  { hashBody, onFailure }: { readonly hashBody: HashBody; readonly onFailure: (error: unknown, id: string) => void },
  now = Date.now(),
): Promise<void> {
  if (now - (removedAt.get(manager) ?? 0) < INTERVAL_MS) return
  removedAt.set(manager, now)
  const isOld = (updatedAt: string) => now - Date.parse(updatedAt) >= REACHABLE_MS
  for (let page_id: string | undefined; ;) {
    const query = { sort: 'created_at', order: 'asc', limit: PAGE, page_id } as const
    const page = await manager.list(query, ({ id }) => isTemporaryId(id, hashBody))
    for (const { id, updated_at } of page.items)
      if (isOld(updated_at)) await remove(manager, id, isOld).catch((error: unknown) => onFailure(error, id))
    if (page.next_page_id === null) return
    page_id = page.next_page_id
  }
}

async function remove(manager: Manager, id: string, isOld: (updatedAt: string) => boolean): Promise<void> {
  const release = takeTurn(id)
  if (!release) return
  try {
    const conversation = await manager.open(id)
    const { status, updatedAt } = conversation.state
    // One that somebody has continued by another API is theirs.
    if (status !== 'running' && isOld(updatedAt) && (await newestIsMarked(conversation))) await manager.delete(id)
  } finally {
    release()
  }
}
