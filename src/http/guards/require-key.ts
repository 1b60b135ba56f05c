/**
 * Requires a key with each request: in the header, in the first frame of a WebSocket, as a ticket in the query of a
 * stream or a download, or by a login.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Tickets, TicketTarget } from '../../access/stream-tickets.ts'
import { Problem } from '../../contract/problem.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { pathOf } from '../files/file-path.ts'
import type { CheckKey } from './first-frame-key.ts'
import type { Authenticate } from './auth.ts'
import { fingerprintIn } from './auth.ts'
import { createFailedKeys } from './failed-keys.ts'
import type { LoginSupport } from './find-login.ts'
import { findLogin, hasLogin } from './find-login.ts'

type KeyCheckDeps = {
  readonly authenticate: Authenticate
  readonly tickets: Tickets
  readonly logins: LoginSupport
  readonly refuseKey: RefuseKey
}

/** Counts a request without a valid credential. Throws `error`, or `too_many_attempts`. */
export type RefuseKey = (request: FastifyRequest, error: unknown) => Promise<never>

export function createKeyRefusal(metrics: Pick<Metrics, 'keyRefused'>): RefuseKey {
  const countFailedKey = createFailedKeys()
  return async (request, error) => {
    request.isKeyRefused = true
    metrics.keyRefused()
    await countFailedKey(request)
    throw error
  }
}

/** Returns a check that throws a `Problem` unless the key is valid, and counts the failures. */
export function createKeyCheck({ authenticate, tickets, logins, refuseKey }: KeyCheckDeps): CheckKey {
  return async (request, authorization) => {
    const ticket = ticketIn(request)
    // What a browser reads ahead is not what a person asks for, and would use the ticket up.
    if (ticket !== undefined && /prefetch/i.test(String(request.headers['sec-purpose'] ?? '')))
      throw new Problem('forbidden', 'A ticket works once, and not for what is fetched ahead.')
    try {
      if (authorization === undefined && ticket === undefined && hasLogin(request)) {
        request.access = await findLogin(request, logins)
      } else if (ticket === undefined) {
        const { fingerprint, access, isForwarded = false } = await authenticate(authorization, request.raw.socket)
        request.keyFingerprint = fingerprint
        request.isForwarded = isForwarded
        request.access = access
      } else {
        request.access = await tickets.redeem(ticket, targetOf(request))
      }
    } catch (error) {
      request.keyFingerprint = fingerprintIn(authorization)
      // A database that does not answer says nothing about the key.
      if (!(error instanceof Problem) || error.status >= 500) throw error
      await refuseKey(request, error)
    }
  }
}

/** Adds the hook that checks the key of each request, except to public routes. */
export function requireKey(app: FastifyInstance, checkKey: CheckKey): void {
  app.addHook('onRequest', async (request) => {
    refuseTokensIn(request.url)
    const { config } = request.routeOptions
    const { authorization } = request.headers
    // A WebSocket may send its key in its first frame, because browsers cannot set the header.
    const keyComes = config.socket && app.upgrades.has(request) && authorization === undefined
    if (config.public || (keyComes && ticketIn(request) === undefined)) return
    await checkKey(request, authorization)
  })
}

/** Reads the path of a file in the same way as the route that sends it. */
function targetOf(request: FastifyRequest): TicketTarget {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a parameter of a route is a string
  const { id } = request.params as { id?: string }
  const isFile = request.routeOptions.config.takesTicket === 'file'
  return { conversationId: id?.toLowerCase(), file: isFile ? pathOf(request).text : undefined }
}

/** The ticket that replaces the header, on the routes of streams and downloads only. */
function ticketIn({ query, headers, routeOptions: { config } }: FastifyRequest): string | undefined {
  if (!config.takesTicket || headers.authorization) return undefined
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- not validated yet
  const { ticket } = query as { ticket?: unknown }
  return typeof ticket === 'string' ? ticket : undefined
}

/** Endings of parameter names that suggest a credential; no other parameter of this server ends like that. */
const CREDENTIAL =
  /(token|key|secret|jwt|auth|authorization|bearer|password|passwd|passphrase|pwd|credential|credentials|signature)$/

/** The name of a page in lists of A2A. */
const PAGE = 'pageToken'

/**
 * Refuses keys in URLs, which browsers, proxies and logs store, even if the request has a valid key elsewhere. Throws a
 * `Problem` that quotes nothing of the URL.
 */
function refuseTokensIn(url: string): void {
  const at = url.indexOf('?')
  if (at === -1) return
  for (const name of new URLSearchParams(url.slice(at)).keys()) {
    if (name === PAGE || !CREDENTIAL.test(name.toLowerCase())) continue
    throw new Problem(
      'token_in_url',
      'URLs end up in logs, so they must not contain a key. Send it as a header: Authorization: Bearer <OPENHANDS_MASTER_KEY>.',
    )
  }
}
