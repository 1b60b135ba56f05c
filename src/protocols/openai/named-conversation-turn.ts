/** Begins a turn in the conversation that a request of the Responses API names. */
import type { FastifyRequest } from 'fastify'
import type { Conversation } from '../../conversations/conversation.ts'
import { accessOf } from '../../http/guards/authorize.ts'
import type { BegunTurn } from './begin-turn.ts'
import { continueConversation } from './begin-turn.ts'
import { findConversation } from './conversations.ts'
import type { AskedModel } from './models.ts'
import { refuseOther } from './models.ts'
import type { GatewayDeps } from '../shared/gateway-deps.ts'
import type { ResponseRequest } from './response-request.ts'
import { mayNotInstruct } from '../shared/create-request.ts'
import { invalid } from '../shared/fields.ts'

/** Undefined if the request names none. */
export function namedIn({ conversation }: Pick<ResponseRequest, 'conversation'>): string | undefined {
  return typeof conversation === 'object' ? conversation?.id : conversation
}

/** `name`: the id of the conversation as clients have it. Throws an `OpenAiError`. */
export async function continueNamed(
  deps: GatewayDeps,
  request: FastifyRequest,
  { name, model, body }: { readonly name: string; readonly model: AskedModel; readonly body: ResponseRequest },
): Promise<BegunTurn> {
  if (body.previous_response_id) throw invalid('conversation', 'cannot be sent together with previous_response_id')
  const conversation = await findConversation(deps, accessOf(request), name, 'conversation')
  refuseOther(conversation, model)
  const earlier = { conversation, end: conversation.log.head, isNamed: true }
  const withOptions = mayNotInstruct(accessOf(request)) ? await withInstructions(conversation, body) : body
  return await continueConversation(deps, request, earlier, withOptions)
}

/** A key that is limited to profiles says them before its first message: the conversation was made without them. */
async function withInstructions({ log }: Conversation, body: ResponseRequest): Promise<ResponseRequest> {
  const { instructions, input } = body
  if (!instructions || !/\S/.test(instructions)) return body
  const { events } = await log.read({ afterSeq: 0, types: new Set(['AssistantMessage']), limit: 1 })
  if (events.length > 0) return body
  const items = typeof input === 'string' ? [{ role: 'user', content: input }] : (input ?? [])
  return { ...body, input: [{ role: 'developer', content: instructions }, ...items] }
}
