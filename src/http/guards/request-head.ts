/** Checks the request head where Node does not, or where Node's response is not in the common format. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Problem } from '../../contract/problem.ts'

/**
 * If one of these is repeated, Node uses the first, and a proxy in front may use another: they would understand
 * different requests.
 */
const ONCE_ONLY: ReadonlySet<string> = new Set(['host', 'authorization', 'content-length', 'content-type', 'expect'])

/** Host and port in URL syntax (RFC 9110, section 7.2); empty if a URL has none. */
const HOST = /^(?:\[[\dA-Fa-f:.]+\]|[\w.~!$&'()*+,;=%-]*)(?::\d*)?$/

const VERSIONS: ReadonlySet<string> = new Set(['1.0', '1.1'])

const BAD_LINE =
  'The first line of the request is not valid. Send the method, the path and HTTP/1.1, with one space between them.'

/**
 * Throws a `Problem`. Call it before anything else is done for the request. `isBadLine`: its first line was not received
 * as it has to be.
 */
export function refuseBadHead({ raw }: FastifyRequest, reply: FastifyReply, isBadLine: boolean): void {
  const fault = isBadLine || !isTarget(raw) || !VERSIONS.has(raw.httpVersion) ? BAD_LINE : faultOf(raw)
  if (fault === undefined) return refuseEncoded(raw)
  // The next request on this connection may be a smuggled one.
  void reply.header('connection', 'close')
  throw new Problem('invalid_request', fault)
}

/** A path, or a URL with the host of the header: a proxy that checks one of the two must not see another. */
function isTarget({ url = '', headers: { host = '' } }: IncomingMessage): boolean {
  if (url.includes('#')) return false
  if (url.startsWith('/') || url === '*') return true
  const [, scheme = '', authority] = /^(https?):\/\/([^/?]*)/i.exec(url) ?? []
  return authority !== undefined && withoutPort(scheme, authority) === withoutPort(scheme, host)
}

/** Clients leave out the port of the scheme in the header, in the URL, or in both. */
function withoutPort(scheme: string, host: string): string {
  const port = scheme.toLowerCase() === 'https' ? '443' : '80'
  const [, name = host, portText = ''] = /^(.*):(\d*)$/.exec(host) ?? []
  return (portText === '' || portText === port ? name : host).toLowerCase()
}

/** The body would be read without decoding, whatever its headers claim. */
function refuseEncoded({ headers }: IncomingMessage): void {
  if (/^(?:identity)?$/i.test(headers['content-encoding'] ?? '')) return
  throw new Problem('unsupported_media_type', 'The server does not accept Content-Encoding. Send the body without it.')
}

function faultOf({ rawHeaders, headers, httpVersion }: IncomingMessage): string | undefined {
  const { host, 'transfer-encoding': encoding } = headers
  // Node accepts any list that ends in `chunked`, and a proxy in front may decode the other encodings.
  if (encoding !== undefined && encoding.toLowerCase() !== 'chunked')
    return 'The Transfer-Encoding is not chunked. Send the body chunked or with Content-Length.'
  const seenNames = new Set<string>()
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]?.toLowerCase() ?? ''
    if (!ONCE_ONLY.has(name)) continue
    if (seenNames.has(name)) return `The request has more than one ${name} header. Send one.`
    seenNames.add(name)
  }
  if (host === undefined) return httpVersion === '1.1' ? 'The request has no Host header. Send one.' : undefined
  return HOST.test(host) ? undefined : 'The Host header is not valid. Send the host of the URL.'
}

export type Expectations = {
  /**
   * Call it for a request that will be executed: sends `100 Continue` if the client waits for it. Throws a `Problem`
   * for any other expectation.
   */
  readonly meet: (request: FastifyRequest, reply: FastifyReply) => void
}

/** Takes over what Node does with `Expect`: by default it would ask for the body of every such request before its key is checked. */
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
