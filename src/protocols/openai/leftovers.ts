/** Removes conversations that were to go with their answer and outlived it: the server stopped before, or no result of a function came. */
import type { FastifyRequest } from 'fastify'
import type { StopReason } from '../../contract/events/status.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import { findForkedFrom } from '../../conversations/forked-log.ts'
import type { ConversationManager } from '../../conversations/manager.ts'
import { findInLog } from '../../events/read-pages.ts'
import type { HashBody } from '../../security/body-hash.ts'
import { beginAlone } from '../shared/begin-alone.ts'
import { deleteIf } from '../shared/delete-if.ts'
import type { GatewayDeps } from '../shared/gateway-deps.ts'
import { isAtRest } from '../shared/is-at-rest.ts'
import { followTurn } from '../items/follow-turn.ts'
import { newestIsMarked } from './chat-history.ts'
import type { LeftoverAges } from './leftover-ages.ts'
import type { ResponseId } from './response-id.ts'
import type { TemporaryKind } from './temporary-id.ts'
import { isTemporaryId } from './temporary-id.ts'

const PAGE = 100

type Manager = Pick<ConversationManager, 'list' | 'open' | 'delete'>

type LeftoverOptions = {
  readonly hashBody: HashBody
  readonly ages: LeftoverAges
  readonly onFailure: (error: unknown, id: string) => void
}

/** Conversations that cannot be removed now are reported, and stay. */
export async function removeLeftovers(manager: Manager, { hashBody, ages, onFailure }: LeftoverOptions): Promise<void> {
  const foundItems: { readonly id: string; readonly updated_at: string }[] = []
  const kinds = new Map<string, TemporaryKind>()
  for (const kind of ['chat', 'response'] as const)
    for (let page_id: string | undefined; ;) {
      const query = { sort: 'created_at', order: 'asc', limit: PAGE, page_id } as const
      const page = await manager.list(query, ({ id }) => isTemporaryId(id, hashBody, kind))
      foundItems.push(...page.items.map(({ id, updated_at }) => ({ id, updated_at })))
      for (const { id } of page.items) kinds.set(id, kind)
      if (page.next_page_id === null) break
      page_id = page.next_page_id
    }
  for (const id of ages.look(foundItems)) {
    const kind = kinds.get(id)
    if (kind) await remove(manager, { id, kind, ages }).catch((error: unknown) => onFailure(error, id))
  }
}

type Leftover = { readonly id: string; readonly kind: TemporaryKind; readonly ages: LeftoverAges }

async function remove(manager: Manager, { id, kind, ages }: Leftover): Promise<void> {
  const release = beginAlone(id)
  if (!release) return
  try {
    const conversation = await manager.open(id)
    const { status, updatedAt } = conversation.state
    if (status === 'running' || !ages.isStillOld(id, updatedAt)) return
    await deleteIf(
      manager,
      conversation,
      async () => conversation.state.status !== 'running' && (await IS_LEFT[kind](conversation)),
    )
  } finally {
    release()
  }
}

/** A conversation that somebody has continued by another API belongs to that client. */
const IS_LEFT: Readonly<Record<TemporaryKind, (conversation: Conversation) => Promise<boolean>>> = {
  // The request of a chat that had ended by itself would have removed it: somebody else has continued it.
  chat: async (conversation) => (await newestIsMarked(conversation)) && !(await hasEndedByItself(conversation)),
  response: (conversation) => isOfOneResponse(conversation),
}

async function hasEndedByItself({ log, requests }: Conversation): Promise<boolean> {
  if (requests.list().length > 0) return false
  const reason = await findInLog(log, { types: ENDS, order: 'desc', limit: PAGE }, ({ event }) =>
    event.type === 'Result' && event.parent_tool_use_id === undefined ? event.stop_reason : undefined,
  )
  return reason !== undefined && !CUT_OFF.has(reason)
}

const ENDS: ReadonlySet<string> = new Set(['Result'])
const CUT_OFF: ReadonlySet<string> = new Set<StopReason>(['server_restart', 'owner_lost'])

/**
 * A client that answers or continues it wants to have it. What a fork has of its original does not count, nor what was said
 * through `knownThrough`.
 */
async function isOfOneResponse({ log, requests }: Conversation, knownThrough?: number): Promise<boolean> {
  const afterSeq = knownThrough ?? (await findForkedFrom(log))?.seq
  const { events } = await log.read({ types: SAID, limit: 2, ...(afterSeq !== undefined && { afterSeq }) })
  return requests.list().length === 0 && events.length < (knownThrough === undefined ? 2 : 1)
}

const SAID: ReadonlySet<string> = new Set(['UserMessage', 'RequestAnswered'])

type UnstoredResponse = {
  readonly id: ResponseId
  readonly conversation: Conversation
  /** The head when a turn began that continues one. */
  readonly knownThrough: number | undefined
}

/** Deletes the conversation when the turn has ended, unless it waits for the client or somebody continues it. Never rejects. */
export async function deleteAtEnd(
  { manager }: GatewayDeps,
  { conversation, id, knownThrough }: UnstoredResponse,
  { log }: Pick<FastifyRequest, 'log'>,
): Promise<void> {
  try {
    for await (const _ of followTurn(conversation.log, id.start, new AbortController().signal));
    // Somebody who continues it now wants to have it.
    const release = beginAlone(conversation.id)
    if (!release) return
    try {
      await deleteIf(
        manager,
        conversation,
        async () => isAtRest(conversation) && (await isOfOneResponse(conversation, knownThrough)),
      )
    } finally {
      release()
    }
  } catch (err) {
    log.warn({ err, conversation_id: conversation.id }, 'a conversation that was not to be stored could not be deleted')
  }
}
