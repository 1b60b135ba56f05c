/** What the routes of the OpenAI API do, in one module, which is loaded when it is used. */
import type { FastifyRequest } from 'fastify'
import { accessOf } from '../../http/guards/authorize.ts'
import { listModels, usableModel } from './models.ts'
import type { GatewayDeps } from '../shared/gateway-deps.ts'
import { conversationAnswered as answered } from './begin-by-input.ts'
import * as chat from './chat-completions.ts'
import * as conversations from './conversations.ts'
import * as responses from './responses.ts'
import { sendError as send } from './openai-error.ts'

export const sendError = send
export const conversationAnswered = answered
export const { createChatCompletion, conversationOfChat } = chat
export const { createResponse, getResponse, cancelResponse, deleteResponse, listInputItems } = responses

export const { createConversationObject, getConversationObject, updateConversationObject } = conversations
export const { deleteConversationObject, listConversationItems, createConversationItems } = conversations
export const { getConversationItem, deleteConversationItem } = conversations

export async function models(deps: GatewayDeps, request: FastifyRequest): Promise<object> {
  return { object: 'list', data: await listModels(deps, accessOf(request)) }
}

export async function model(deps: GatewayDeps, request: FastifyRequest): Promise<object> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the parameter of the route
  const { model: name } = request.params as { model: string }
  return await usableModel(deps, accessOf(request), name)
}
