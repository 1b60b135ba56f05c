/**
 * One line in the server's log for each request: `request`, or `audit` when it was to change something or had no right
 * key. Each says from where the request came and with which key, by the key's fingerprint. Never a URL, a body or a key:
 * what clients put there may be secret.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { uuid7 } from '../lib/uuid7.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The fingerprint of the key it came with, right or wrong. */
    keyFingerprint: string | undefined
    /** It came without a right key. */
    isKeyRefused: boolean
  }
}

const CHANGING: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'DELETE'])

export function logRequest(request: FastifyRequest, reply: FastifyReply): void {
  const { method, routeOptions } = request
  const ms = Math.round(reply.elapsedTime * 10) / 10
  const facts = { method, route: routeOptions.url, status: reply.statusCode, ms, ...whoOf(request) }
  if (request.isKeyRefused || (CHANGING.has(method) && !routeOptions.config.public)) {
    return request.log.info({ ...facts, conversation_id: conversationOf(request, reply) }, 'audit')
  }
  // Probes come every few seconds and say nothing.
  if (routeOptions.config.public) request.log.debug(facts, 'request')
  else request.log.info(facts, 'request')
}

/** A socket has no answer but its end. */
export function logSocket(request: FastifyRequest, end: { readonly close: number; readonly ms: number }): void {
  const { method, routeOptions } = request
  const isAllowed = request.keyFingerprint !== undefined && !request.isKeyRefused
  const facts = { method, route: routeOptions.url, status: 101, ...end, ...whoOf(request) }
  request.log.info(facts, isAllowed ? 'request' : 'audit')
}

/** From where, and with which key, right or wrong. */
const whoOf = ({ ip, keyFingerprint, access }: FastifyRequest) => ({
  address: ip,
  key: keyFingerprint,
  ...(access?.key && { key_id: access.key.id, key_name: access.key.name }),
})

/** Logs a frame that was executed or refused; `frame` is undefined for data that was not a frame. */
export function logCommand(
  request: FastifyRequest,
  command: { readonly frame: string | undefined; readonly status: number; readonly conversation_id: string },
): void {
  const { method, routeOptions } = request
  request.log.info({ method, route: routeOptions.url, ...command, ...whoOf(request) }, 'audit')
}

const Params = z.object({ id: z.uuid().toLowerCase() })

/** The one that the route names, or that it has made. */
function conversationOf({ params }: FastifyRequest, reply: FastifyReply): string | undefined {
  const named = Params.safeParse(params)
  if (named.success) return named.data.id
  const location = reply.getHeader('location')
  return typeof location === 'string' ? /^\/conversations\/([^/]+)$/.exec(location)?.[1] : undefined
}

/** A client's own, when it is short and plain: it is repeated in a header and in the log. */
const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/

export function requestIdOf(headers: { readonly [name: string]: string | string[] | undefined }): string {
  const given = headers['x-request-id']
  return typeof given === 'string' && REQUEST_ID.test(given) ? given : uuid7()
}
