/** The operations of the Conversations API. A conversation of it is one of the server, and its items follow from the log. */
import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Access } from '../../access/access.ts'
import { UpdateConfig } from '../../contract/conversation.ts'
import type { PostedMessage } from '../../contract/run.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import { accessOf } from '../../http/guards/authorize.ts'
import { createOrFind } from '../../http/guards/create-or-find.ts'
import { mayConfigure, ownKey } from '../../http/guards/limited-requests.ts'
import { busy } from './begin-turn.ts'
import type { ConversationItem } from './conversation-items.ts'
import { findItem, pageOfItems } from './conversation-items.ts'
import { createRequestFor } from '../shared/create-request.ts'
import type { GatewayDeps } from '../shared/gateway-deps.ts'
import { itemsOfInput } from './input-items.ts'
import { creationOfModel, requireModel } from './models.ts'
import { OpenAiError } from './openai-error.ts'
import { formatConversationId, parseConversationId } from './response-id.ts'
import { Metadata } from './response-request.ts'
import type { ResponseRetry } from './response-retries.ts'
import { creationOf, itemMarks, retryOf } from './response-retries.ts'
import type { UserWords } from './user-items.ts'
import { InputItems, userWordsOf } from './user-items.ts'
import { invalid, parseField } from '../shared/fields.ts'
import { beginAlone } from '../shared/begin-alone.ts'
import { deleteUnused } from '../shared/settle-new.ts'

const Create = z.looseObject({ items: InputItems.nullish(), metadata: Metadata, model: z.string().nullish() })
const Update = z.looseObject({ metadata: z.record(z.string(), z.unknown()).nullable() })
const Add = z.looseObject({ items: InputItems.min(1) })
const ListItems = z.object({
  after: z.string().optional(),
  limit: z.coerce.number().int().min(1).max(100).default(20),
  order: z.enum(['asc', 'desc']).default('desc'),
})

/** It has its `model` from the beginning, for the agent is made with the conversation. */
export async function createConversationObject(deps: GatewayDeps, request: FastifyRequest): Promise<object> {
  const access = accessOf(request)
  const { items, metadata, model } = parseField(Create, request.body)
  const askedModel = await requireModel(deps, access, model ?? onlyProfileOf(access))
  const words = userWordsOf(items ?? [])
  const wish = await createRequestFor(deps, access, { ...creationOfModel(askedModel), tools: [], metadata })
  const retry = retryOf(request)
  const idempotency = ownKey(access, creationOf(retry))
  const { view } = await createOrFind(deps.manager, access, wish, { idempotency })
  request.conversationId = view.id
  const release = beginAlone(view.id)
  // Another request with the key is adding the items.
  if (!release) throw busy()
  try {
    const conversation = await deps.manager.open(view.id)
    // The server may have stopped while they were added: those that are there are not added again.
    await post(conversation, words, retry).catch(async (error: unknown) => {
      await deleteUnused(deps.manager, conversation, { freesKey: true })
      throw error
    })
    return objectOf(conversation)
  } finally {
    release()
  }
}

function onlyProfileOf({ limits: { profiles } }: Access): string {
  const [only = 'default', ...others] = profiles ?? []
  return others.length === 0 ? only : 'default'
}

export async function getConversationObject(deps: GatewayDeps, request: FastifyRequest): Promise<object> {
  return objectOf(await findConversation(deps, accessOf(request), idIn(request)))
}

/** Replaces the metadata. */
export async function updateConversationObject(deps: GatewayDeps, request: FastifyRequest): Promise<object> {
  const access = accessOf(request)
  const { metadata } = parseField(Update, request.body)
  const conversation = await findConversation(deps, access, idIn(request))
  const update = parseField(UpdateConfig, { metadata: metadata ?? {} })
  mayConfigure(access, update)
  await conversation.configure(update)
  return objectOf(conversation)
}

/** Ends what works in it, too. */
export async function deleteConversationObject(deps: GatewayDeps, request: FastifyRequest): Promise<object> {
  const { id } = await findConversation(deps, accessOf(request), idIn(request))
  await deps.manager.delete(id)
  return { id: formatConversationId(id), object: 'conversation.deleted', deleted: true }
}

export async function listConversationItems(deps: GatewayDeps, request: FastifyRequest): Promise<object> {
  const query = parseField(ListItems, request.query)
  const conversation = await findConversation(deps, accessOf(request), idIn(request))
  const { items, hasMore } = await pageOfItems(conversation, query)
  return listOf(items, hasMore)
}

export async function getConversationItem(deps: GatewayDeps, request: FastifyRequest): Promise<ConversationItem> {
  const conversation = await findConversation(deps, accessOf(request), idIn(request))
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the parameter of the route
  const { item_id: itemId } = request.params as { item_id: string }
  const item = await findItem(conversation, itemId)
  if (item) return item
  throw new OpenAiError(404, `There is no item ${itemId.slice(0, 100)}.`, { code: 'not_found', param: 'item_id' })
}

export async function deleteConversationItem(): Promise<never> {
  throw invalid(
    'item_id',
    'cannot be deleted: a conversation keeps what was said. Continue an earlier response instead',
  )
}

/** Adds messages, which the agent reads with the next response. */
export async function createConversationItems(deps: GatewayDeps, request: FastifyRequest): Promise<object> {
  const words = userWordsOf(parseField(Add, request.body).items)
  const conversation = await findConversation(deps, accessOf(request), idIn(request))
  request.conversationId = conversation.id
  const release = beginAlone(conversation.id)
  if (!release) throw busy()
  try {
    if (conversation.state.status === 'running') throw busy()
    if (conversation.requests.list().length > 0)
      throw new OpenAiError(409, 'The agent waits for an answer. Send it, or a message, as the input of a response.', {
        code: 'waiting_for_decision',
        param: 'items',
      })
    return listOf(await post(conversation, words, retryOf(request)), false)
  } finally {
    release()
  }
}

/** Posts all messages, or none. Those of an earlier request that this one repeats are not posted again. */
async function post(
  conversation: Conversation,
  words: readonly UserWords[],
  retry: ResponseRetry,
): Promise<ConversationItem[]> {
  const postedMessages: PostedMessage[] = []
  const markOf = itemMarks(conversation, words.length, retry)
  try {
    for (const [at, content] of words.entries()) {
      const message = { role: 'user' as const, content: [...content] }
      postedMessages.push(await conversation.post({ message, run: false }, await markOf(at)))
    }
  } catch (error) {
    for (const { event_id } of postedMessages) await conversation.withdrawals.withdraw(event_id).catch(() => {}) // the agent has read it
    throw error
  }
  const pages = await Promise.all(
    postedMessages.map(({ seq }) => conversation.log.read({ afterSeq: seq - 1, beforeSeq: seq + 1, limit: 1 })),
  )
  return pages.flatMap(({ events }) => events.flatMap(({ event }) => itemsOfInput(event)))
}

/** Throws an `OpenAiError`, also for a conversation that the key does not see. */
export async function findConversation(
  { manager }: GatewayDeps,
  access: Access,
  text: string,
  param = 'conversation_id',
): Promise<Conversation> {
  const id = parseConversationId(text)
  if (id !== undefined) await manager.upToDate()
  const owner = id === undefined ? undefined : manager.ownerOf(id)
  if (owner && access.sees(owner)) return await manager.open(owner.id)
  throw new OpenAiError(404, `There is no conversation ${text.slice(0, 100)}.`, { code: 'not_found', param })
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a parameter of each of these routes
const idIn = ({ params }: FastifyRequest): string => (params as { conversation_id: string }).conversation_id

const objectOf = ({ id, state }: Conversation): object => ({
  id: formatConversationId(id),
  object: 'conversation',
  created_at: Math.floor(Date.parse(state.createdAt) / 1000),
  metadata: state.settings.metadata ?? {},
})

const listOf = (data: readonly ConversationItem[], hasMore: boolean): object => ({
  object: 'list',
  data,
  first_id: data.at(0)?.id ?? null,
  last_id: data.at(-1)?.id ?? null,
  has_more: hasMore,
})
