/** Checks of the request head that Node does not do, or does without an answer in our form. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Problem } from '../../contract/problem.ts'

/** Of several of these Node takes the first, and a proxy in front perhaps another: then each has understood another request. */
const ONCE_ONLY: ReadonlySet<string> = new Set(['host', 'authorization', 'content-length', 'content-type', 'expect'])

/** A host and a port as URLs have them (RFC 9110, section 7.2); empty where a URL has none. */
const HOST = /^(?:\[[\dA-Fa-f:.]+\]|[\w.~!$&'()*+,;=%-]*)(?::\d*)?$/

/** Throws a `Problem`. Before anything else is done for the request. */
export function refuseBadHead({ raw }: FastifyRequest, reply: FastifyReply): void {
  const fault = faultOf(raw)
  if (fault === undefined) return refuseEncoded(raw)
  // The next request on this connection may not be what it seems.
  void reply.header('connection', 'close')
  throw new Problem('invalid_request', fault)
}

/** A body would be read as it comes, whatever it is said to be. */
function refuseEncoded({ headers }: IncomingMessage): void {
  if (/^(?:identity)?$/i.test(headers['content-encoding'] ?? '')) return
  throw new Problem('unsupported_media_type', 'The server does not accept Content-Encoding. Send the body without it.')
}

function faultOf({ rawHeaders, headers, httpVersion }: IncomingMessage): string | undefined {
  const { host, 'transfer-encoding': encoding } = headers
  // Node reads any list that ends in `chunked`, and a proxy in front perhaps undoes the others.
  if (encoding !== undefined && encoding.toLowerCase() !== 'chunked')
    return 'The Transfer-Encoding is not chunked. Send the body chunked or with Content-Length.'
  const seen = new Set<string>()
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]?.toLowerCase() ?? ''
    if (!ONCE_ONLY.has(name)) continue
    if (seen.has(name)) return `The request has more than one ${name} header. Send one.`
    seen.add(name)
  }
  if (host === undefined) return httpVersion === '1.1' ? 'The request has no Host header. Send one.' : undefined
  return HOST.test(host) ? undefined : 'The Host header is not valid. Send the host of the URL.'
}

export type Expectations = {
  /** For a request that may be executed: asks for its body if the client waits for that. Throws a `Problem` for any other expectation. */
  readonly meet: (request: FastifyRequest, reply: FastifyReply) => void
}

/** Node would ask for the body of every request that offers to wait, before anybody has looked at the key. */
export function watchExpectations({ server }: Pick<FastifyInstance, 'server'>): Expectations {
  const waiting = new WeakSet<IncomingMessage>()
  const unmet = new WeakSet<IncomingMessage>()
  const noteIn = (those: WeakSet<IncomingMessage>) => (request: IncomingMessage, response: ServerResponse) => {
    those.add(request)
    server.emit('request', request, response)
  }
  server.on('checkContinue', noteIn(waiting))
  server.on('checkExpectation', noteIn(unmet))
  return {
    meet({ raw }, reply) {
      if (unmet.has(raw)) {
        throw new Problem(
          'expectation_failed',
          'The server supports no expectation except 100-continue. Leave out Expect.',
        )
      }
      if (waiting.has(raw)) reply.raw.writeContinue()
    },
  }
}
