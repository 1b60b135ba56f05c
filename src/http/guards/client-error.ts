/**
 * Answers connections that never become a valid request, or take too long, with an error in the common format, and
 * closes them.
 */
import { STATUS_CODES } from 'node:http'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { Problem } from '../../contract/problem.ts'
import { endGracefully } from './graceful-end.ts'

/** Maximum size of request line and headers together: Node's default, set explicitly because `/info` reports it. */
export const MAX_HEADER_BYTES = 16 * 1024

export function answerClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET') return void socket.destroy()
  answerAndClose(socket, problemOf(error))
}

/** If a response has begun, the connection is cut instead: a second response inside it would be read as part of it. */
export function answerAndClose(socket: Socket, problem: Problem): void {
  if (!socket.writable || isAnswering(socket)) return void socket.destroy()
  const body = JSON.stringify(problem.toBody())
  const head = [
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ]
  endGracefully(socket, `${head.join('\r\n')}\r\n\r\n${body}`)
}

/** Node reports CONNECT with an event that is not the one of requests, and would close the connection without an answer. */
export function refuseTunnels({ server }: Pick<FastifyInstance, 'server'>): void {
  const problem = new Problem('invalid_request', 'This server is not a proxy. Send the request without CONNECT.')
  server.on('connect', ({ socket }) => answerAndClose(socket, problem))
}

export function tooSlow(): Problem {
  return new Problem('request_timeout', 'The request took too long to arrive. Send it again, faster.')
}

/** Checks as Node's own handler of such errors does; there is no public name for a socket's current response. */
function isAnswering(socket: Socket): boolean {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- set by `assignSocket`; the types lack it
  const { _httpMessage: answer } = socket as { _httpMessage?: ServerResponse | null }
  return answer?.headersSent ?? false
}

function problemOf({ code }: NodeJS.ErrnoException): Problem {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return tooSlow()
  if (code === 'HPE_HEADER_OVERFLOW') {
    return new Problem(
      'headers_too_large',
      `The URL and the headers have more than ${MAX_HEADER_BYTES} bytes together. Send less.`,
    )
  }
  return new Problem('invalid_request', 'The server cannot parse this HTTP request. Check its first line.')
}
