/**
 * Writes one line per request to the server's log: `request`, or `audit` for changes and refused keys. Each line has
 * the client's address and the fingerprint of its key. Never logs a URL, a body or a key: clients may put secrets into
 * them.
 */
import type { IncomingMessage } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { uuid7 } from '../../lib/uuid7.ts'
import { namedConversation } from './named-conversation.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The fingerprint of the request's key, valid or not. */
    keyFingerprint: string | undefined
    /** True if the request had no valid key. */
    isKeyRefused: boolean
    /** True if another instance has sent it, which writes the audit line. */
    isForwarded: boolean
  }
}

const CHANGING: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'DELETE'])

/** Logs a change, and a refused key. Call it when the answer is known: the client may have left, and reads none. */
export function logChange(request: FastifyRequest, reply: FastifyReply): void {
  if (!isAudited(request)) return
  const conversationId = ConversationUuid.safeParse(request.conversationId ?? namedConversation(request))
  const conversation_id = conversationId.success ? conversationId.data : conversationIn(reply)
  request.log.info({ ...factsOf(request, reply), conversation_id }, 'audit')
}

/** Logs any other request. Call it when the response has ended. */
export function logRead(request: FastifyRequest, reply: FastifyReply): void {
  if (isAudited(request)) return
  // Health checks arrive every few seconds and are not worth a line.
  if (request.routeOptions.config.public) request.log.debug(factsOf(request, reply), 'request')
  else request.log.info(factsOf(request, reply), 'request')
}

function isAudited({ isKeyRefused, isForwarded, method, routeOptions, access }: FastifyRequest): boolean {
  const isPublic = routeOptions.config.public && access === undefined
  return isKeyRefused || (CHANGING.has(method) && !isPublic && !isForwarded)
}

function factsOf(request: FastifyRequest, reply: FastifyReply) {
  const { method, routeOptions } = request
  const ms = Math.round(reply.elapsedTime * 10) / 10
  return { method, route: routeOptions.url, status: reply.statusCode, ms, ...whoOf(request) }
}

/** A WebSocket is logged when it closes. */
export function logSocket(request: FastifyRequest, end: { readonly close: number; readonly ms: number }): void {
  const { method, routeOptions } = request
  const isAllowed = request.access !== undefined && !request.isKeyRefused
  const facts = { method, route: routeOptions.url, status: 101, ...end, ...whoOf(request) }
  request.log.info(facts, isAllowed ? 'request' : 'audit')
}

/** Client address and key fingerprint, valid or not. */
const whoOf = ({ ip, keyFingerprint, access }: FastifyRequest) => ({
  address: ip,
  key: keyFingerprint,
  ...(access?.key && { key_id: access.key.id, key_name: access.key.name }),
  ...(access?.loginId !== undefined && { login_id: access.loginId }),
})

/** Logs a frame that was executed or refused; `frame` is undefined for data that was not a frame. */
export function logCommand(
  request: FastifyRequest,
  command: { readonly frame: string | undefined; readonly status: number; readonly conversation_id: string },
): void {
  const { method, routeOptions } = request
  request.log.info({ method, route: routeOptions.url, ...command, ...whoOf(request) }, 'audit')
}

/** Returns the conversation that was created. */
function conversationIn(reply: FastifyReply): string | undefined {
  const location = reply.getHeader('location')
  return typeof location === 'string' ? /^\/conversations\/([^/]+)$/.exec(location)?.[1] : undefined
}

/** A client can send anything in a path. */
const ConversationUuid = z.uuid().toLowerCase()

/** A client's own request id is accepted if it is short and plain: it is repeated in a header and in the log. */
const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/

export function requestIdOf({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const givenId = headers['x-request-id']
  return typeof givenId === 'string' && REQUEST_ID.test(givenId) ? givenId : uuid7()
}
