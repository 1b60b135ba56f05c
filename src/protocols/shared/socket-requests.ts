/** What a client asks for on a WebSocket as requests to this server, with the permissions of its key. */
import type { FastifyRequest } from 'fastify'
import { accessOf } from '../../http/guards/authorize.ts'
import type { InnerConnections } from '../../http/local/inner-connections.ts'
import type { LocalFetch } from '../../http/local/local-fetch.ts'
import { createLocalFetch } from '../../http/local/local-fetch.ts'
import { createSseDecoder } from '../../lib/sse-decoder.ts'

export function fetchAs(request: FastifyRequest, innerConnections: InnerConnections): LocalFetch {
  const rights = { access: accessOf(request), fingerprint: request.keyFingerprint ?? '' }
  const createConnection = () => innerConnections.open(request.server.server, rights, request.ip)
  return createLocalFetch({ createConnection })
}

/** The data of each event of a response. */
export async function* dataOfEvents(response: Response): AsyncGenerator<string, void, void> {
  const decoder = createSseDecoder()
  for await (const text of (response.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream()))
    for (const { data } of decoder.push(text)) yield data
}
