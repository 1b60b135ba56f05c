/** A WebSocket as a stream of messages: one in each frame of text, at the pace of the reader on both sides. */
import type { AnyMessage, Stream } from '@agentclientprotocol/sdk'
import { RequestError } from '@agentclientprotocol/sdk'
import type { SocketConnection } from '../../http/socket/connection.ts'
import { ComplexJson, parseUntrustedJson } from '../../lib/json/untrusted-json.ts'

/** Requests of the client without an answer, such as prompts. */
const MAX_OPEN_REQUESTS = 256
const TOO_MANY = 'too many requests wait for an answer'

export function socketStream(socket: SocketConnection): Stream {
  const open = new Set<string>()
  const refuse = async (id: unknown, error: RequestError) =>
    await socket.send({ jsonrpc: '2.0', id, error: error.toErrorResponse() })
  const { frames } = socket
  return {
    readable: new ReadableStream<AnyMessage>({
      async pull(controller) {
        for (;;) {
          const { value: frame, done } = await frames.next()
          if (done) return controller.close()
          const { message, error } = parseFrame(frame)
          if (error) {
            await refuse(null, error)
            continue
          }
          const key = 'method' in message ? keyOf(message) : undefined
          if (key === undefined) return controller.enqueue(message)
          const fault = open.has(key) ? 'the id is in use' : open.size >= MAX_OPEN_REQUESTS ? TOO_MANY : undefined
          if (fault === undefined) {
            open.add(key)
            return controller.enqueue(message)
          }
          await refuse(Object(message).id, RequestError.invalidRequest(undefined, fault))
        }
      },
    }),
    writable: new WritableStream<AnyMessage>({
      async write(message) {
        const key = keyOf(message)
        if (key !== undefined && !('method' in message)) open.delete(key)
        await socket.send(message)
      },
    }),
  }
}

function parseFrame(frame: string): { message: AnyMessage; error?: never } | { message?: never; error: RequestError } {
  try {
    const message = parseUntrustedJson(frame)
    if (typeof message === 'object' && message !== null && !Array.isArray(message))
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the SDK checks it
      return { message: message as AnyMessage }
    return { error: RequestError.invalidRequest(undefined, 'send one JSON object per frame') }
  } catch (error) {
    const why = error instanceof ComplexJson ? error.message : 'it is not JSON'
    return { error: RequestError.parseError(undefined, why) }
  }
}

/** Numbers and texts are different ids. */
function keyOf(message: object): string | undefined {
  const id: unknown = 'id' in message ? message.id : undefined
  return typeof id === 'string' || typeof id === 'number' || id === null ? JSON.stringify(id) : undefined
}
