/** Returns what hides the secrets of the conversation that a request is about. */
import type { FastifyRequest } from 'fastify'
import { namedConversation } from '../../http/request/named-conversation.ts'
import type { GatewayDeps } from './gateway-deps.ts'

export async function redactorOf(
  { manager }: Pick<GatewayDeps, 'manager'>,
  request: FastifyRequest,
): Promise<(text: string) => string> {
  const id = request.conversationId ?? namedConversation(request)
  return id === undefined ? (text) => text : await manager.redactFor(id)
}
