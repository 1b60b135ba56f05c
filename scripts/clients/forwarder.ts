/** A server between a client and the server under test, which changes the headers of each request and nothing else. */
import { createServer, request as send } from 'node:http'
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'

/** The server takes less, so that its own refusal is what comes back. */
const MAX_HEADER_BYTES = 256 * 1024

export async function startForwarder(target: string, change: (headers: IncomingHttpHeaders) => OutgoingHttpHeaders) {
  const server = createServer({ maxHeaderSize: MAX_HEADER_BYTES }, (incoming, outgoing) => {
    const options = { method: incoming.method, headers: change(incoming.headers) }
    const forwarded = send(`${target}${incoming.url}`, options, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.rawHeaders)
      answer.pipe(outgoing)
    })
    forwarded.on('error', () => outgoing.destroy())
    outgoing.on('close', () => forwarded.destroy())
    incoming.pipe(forwarded)
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo // it listens on TCP
  return {
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await server[Symbol.asyncDispose]()
    },
  }
}
