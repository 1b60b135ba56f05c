/** Finds the conversation of a chat: its id is the `external_id` of the conversation, or that of the conversation itself. */
import type { FastifyRequest } from 'fastify'
import { Problem } from '../../contract/problem.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import { accessOf } from '../../http/guards/authorize.ts'
import { findThread, findThreadId } from '../shared/find-thread.ts'
import type { GatewayDeps } from '../shared/gateway-deps.ts'

/** Returns undefined if the key sees no such chat. */
export async function findChat(
  deps: GatewayDeps,
  request: FastifyRequest,
  chatId = chatIdIn(request),
): Promise<Conversation | undefined> {
  const conversation = await findThread(deps, accessOf(request), chatId)
  if (conversation) request.conversationId = conversation.id
  return conversation
}

/** Throws the `Problem` `conversation_not_found`. */
export async function requireChat(deps: GatewayDeps, request: FastifyRequest, chatId?: string): Promise<Conversation> {
  const conversation = await findChat(deps, request, chatId)
  if (conversation) return conversation
  throw new Problem('conversation_not_found', 'There is no chat with this id. Send its first message.')
}

/** The conversation that a request is about; undefined if it makes one. */
export async function chatInRequest(deps: GatewayDeps, request: FastifyRequest): Promise<string | undefined> {
  const { body } = request
  const inBody = typeof body === 'object' && body !== null && 'id' in body ? body.id : undefined
  const chatId = request.method === 'POST' && chatIdIn(request) === '' ? inBody : chatIdIn(request)
  if (typeof chatId !== 'string' || chatId === '') return undefined
  return await findThreadId(deps, accessOf(request), chatId)
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the parameter of the route
const chatIdIn = ({ params }: FastifyRequest): string => (params as { chat_id?: string }).chat_id ?? ''
