/** Returns what hides the secrets of the conversation that a request is about. */
import type { FastifyRequest } from 'fastify'
import { namedConversation } from '../../http/request/named-conversation.ts'
import type { GatewayDeps } from './gateway-deps.ts'

export async function redactorOf(
  { manager }: Pick<GatewayDeps, 'manager'>,
  request: FastifyRequest,
): Promise<(text: string) => string> {
  const id = request.conversationId ?? namedConversation(request)
  const owner = id === undefined ? undefined : manager.ownerOf(id)
  // What it hides says what the secrets are: a key learns nothing of conversations that it does not see.
  if (id === undefined || !owner || !request.access?.sees(owner)) return (text) => text
  return await manager.redactFor(id)
}
