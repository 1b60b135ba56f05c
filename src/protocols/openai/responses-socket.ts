/**
 * Responses over a WebSocket: each frame `response.create` is a request of the API with a stream, whose events are frames. What it asks
 * for is a request to this server, with the permissions of its key.
 */
import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { ComplexJson, parseUntrustedJson } from '../../lib/json/untrusted-json.ts'
import type { InnerConnections } from '../../http/local/inner-connections.ts'
import type { LocalFetch } from '../../http/local/local-fetch.ts'
import type { SocketConnection } from '../../http/socket/connection.ts'
import { dataOfEvents, fetchAs } from '../shared/socket-requests.ts'

export type ResponsesSocketDeps = { readonly innerConnections: InnerConnections }

const Create = z.looseObject({ type: z.literal('response.create'), stream_id: z.string().max(200).optional() })

/** Resolves when the client has disconnected. One response after the other is sent; their agents work on. */
export async function serveResponses(
  socket: SocketConnection,
  request: FastifyRequest,
  { innerConnections }: ResponsesSocketDeps,
): Promise<void> {
  await using local = fetchAs(request, innerConnections)
  for await (const frame of socket.frames) {
    const { message, fault } = parseFrame(frame)
    if (message) await answer(socket, local, message)
    else await socket.send(errorFrame(400, { message: fault, type: 'invalid_request_error', code: null, param: null }))
  }
}

type Message = z.infer<typeof Create>

function parseFrame(frame: string): { message: Message; fault?: never } | { message?: never; fault: string } {
  try {
    const { data } = Create.safeParse(parseUntrustedJson(frame))
    if (!data) return { fault: 'Send events of the type response.create. Others are not supported.' }
    const wrong = ['background', 'generate'].find((name) => (data[name] ?? undefined) === (name === 'background'))
    return wrong === undefined ? { message: data } : { fault: `${wrong} is not supported over a WebSocket.` }
  } catch (error) {
    return { fault: error instanceof ComplexJson ? error.message : 'The frame is not JSON.' }
  }
}

/** Sends the events of one response. They have the `stream_id` of the request. The route ignores the type of the frame. */
async function answer(socket: SocketConnection, local: LocalFetch, { stream_id, ...body }: Message): Promise<void> {
  const mark = stream_id === undefined ? {} : { stream_id }
  try {
    const response = await local.fetch(`${local.baseUrl}/v1/responses`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ...body, stream: true }),
      signal: socket.signal,
    })
    if (!response.ok) {
      const { error } = ErrorBody.parse(await response.json())
      return await socket.send({ ...errorFrame(response.status, error), ...mark })
    }
    for await (const data of dataOfEvents(response)) {
      const event: unknown = JSON.parse(data)
      await socket.send({ ...Object(event), ...mark })
    }
  } catch (error) {
    // The client has gone.
    if (!socket.signal.aborted) throw error
  }
}

const ErrorBody = z.object({ error: z.looseObject({ message: z.string() }) })

/** Has both forms in which clients read errors. */
const errorFrame = (status: number, error: z.infer<typeof ErrorBody>['error']) => ({
  ...error,
  type: 'error',
  status,
  error,
  sequence_number: 0,
})
