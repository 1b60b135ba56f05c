/** Begins the turn of a request that names neither a response nor a conversation: the ids of the calls that it answers say what it continues. */
import type { FastifyRequest } from 'fastify'
import type { Access } from '../../access/access.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import { accessOf } from '../../http/guards/authorize.ts'
import type { GatewayDeps } from '../shared/gateway-deps.ts'
import type { BegunTurn } from './begin-turn.ts'
import { continueConversation, createConversationFor } from './begin-turn.ts'
import { parseCallId } from './call-id.ts'
import { parseApprovalId } from './response-id.ts'
import type { ResponseRequest } from './response-request.ts'
import { readInput, sinceModel } from './response-request.ts'

/** Throws an `OpenAiError`. */
export async function beginByInput(
  deps: GatewayDeps,
  request: FastifyRequest,
  profile: string,
  body: ResponseRequest,
): Promise<BegunTurn> {
  const input = sinceModel(body.input)
  const conversation = await answeredBy(deps, accessOf(request), { ...body, input }, profile)
  if (!conversation) return await createConversationFor(deps, request, profile, body)
  const earlier = { conversation, end: conversation.log.head, isNamed: true }
  return await continueConversation(deps, request, earlier, { ...body, input })
}

/** A conversation that the key does not see, or of another profile, is as one that does not exist. */
async function answeredBy(
  { manager }: GatewayDeps,
  access: Access,
  { input }: ResponseRequest,
  profile: string,
): Promise<Conversation | undefined> {
  const { outputs, approvals } = readInput(input, false)
  const id = parseCallId(outputs[0]?.callId ?? '') ?? parseApprovalId(approvals[0]?.id ?? '')
  if (!id) return undefined
  await manager.upToDate()
  const owner = manager.ownerOf(id.conversationId)
  if (!owner || !access.sees(owner)) return undefined
  const conversation = await manager.open(id.conversationId)
  return conversation.state.settings.profile === profile ? conversation : undefined
}
