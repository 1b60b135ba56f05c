/** Begins the turn of a request that names neither a response nor a conversation: the ids of the calls that it answers say what it continues. */
import type { FastifyRequest } from 'fastify'
import type { Access } from '../../access/access.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import { accessOf } from '../../http/guards/authorize.ts'
import type { GatewayDeps } from '../shared/gateway-deps.ts'
import type { BegunTurn } from './begin-turn.ts'
import { continueConversation, createConversationFor } from './begin-turn.ts'
import type { AskedModel } from './models.ts'
import { isOfModel } from './models.ts'
import { parseCallId } from './call-id.ts'
import { parseApprovalId } from './response-id.ts'
import type { ResponseInput } from './response-request.ts'
import { ResponseRequest, readInput, sinceModel } from './response-request.ts'

/** Throws an `OpenAiError`. */
export async function beginByInput(
  deps: GatewayDeps,
  request: FastifyRequest,
  model: AskedModel,
  body: ResponseRequest,
): Promise<BegunTurn> {
  const input = sinceModel(body.input)
  const conversation = await answeredBy(deps, accessOf(request), { ...body, input }, model)
  if (!conversation) return await createConversationFor(deps, request, model, body)
  const earlier = { conversation, end: conversation.log.head, isNamed: true }
  return await continueConversation(deps, request, earlier, { ...body, input })
}

/** Returns the conversation whose calls the request answers, if that says which one it continues. */
export function conversationAnswered(body: unknown): string | undefined {
  const parsedRequest = ResponseRequest.safeParse(body)
  if (!parsedRequest.success) return undefined
  try {
    return idAnswered(readInput(sinceModel(parsedRequest.data.input), false))
  } catch {
    // The request will be refused, by any instance.
    return undefined
  }
}

const idAnswered = ({ outputs, approvals }: ResponseInput): string | undefined =>
  (parseCallId(outputs[0]?.callId ?? '') ?? parseApprovalId(approvals[0]?.id ?? ''))?.conversationId

/** A conversation that the key does not see, or of another model, is as one that does not exist. */
async function answeredBy(
  { manager }: GatewayDeps,
  access: Access,
  { input }: ResponseRequest,
  model: AskedModel,
): Promise<Conversation | undefined> {
  const id = idAnswered(readInput(input, false))
  if (id === undefined) return undefined
  await manager.upToDate()
  const owner = manager.ownerOf(id)
  if (!owner || !access.sees(owner)) return undefined
  const conversation = await manager.open(id)
  return isOfModel(conversation, model) ? conversation : undefined
}
