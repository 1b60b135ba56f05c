/** What never becomes a request, or takes too long to be one: answered in the form that all errors have, and the connection ended. */
import { STATUS_CODES } from 'node:http'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Problem } from '../../contract/problem.ts'
import { endGracefully } from './graceful-end.ts'

/** Of the first line and the headers together: Node's default, named here because `/info` shows it. */
export const MAX_HEADER_BYTES = 16 * 1024

export function answerClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET') return void socket.destroy()
  answerAndClose(socket, problemOf(error))
}

/** Where an answer has begun, it is cut off instead: a second one in it would be taken for a part of it. */
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

export function tooSlow(): Problem {
  return new Problem('request_timeout', 'The request took too long to arrive. Send it again, faster.')
}

/** As Node's own handler of such errors finds out; there is no public name for the answer that a socket carries. */
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
