/** A WebSocket as a stream of messages: one in each frame of text, at the pace of the reader on both sides. */
import type { AnyMessage, Stream } from '@agentclientprotocol/sdk'
import { RequestError } from '@agentclientprotocol/sdk'
import { z } from 'zod'
import type { SocketConnection } from '../../http/socket/connection.ts'
import { ComplexJson, parseUntrustedJson } from '../../lib/json/untrusted-json.ts'

/** Requests of the client without an answer, such as prompts. */
const MAX_OPEN_REQUESTS = 256
/** Characters of their frames together. */
const MAX_OPEN_CHARS = 64 * 1024 * 1024
/** Answers repeat the id, and errors the name of the method. */
const MAX_NAME_CHARS = 256

export function socketStream(socket: SocketConnection): Stream {
  /** The sizes of the open requests, by their ids. */
  const open = new Map<string, number>()
  let openChars = 0
  /** What the client was asked: the SDK logs answers to anything else. */
  const askedIds = new Set<string>()
  const refuse = async (id: unknown, error: RequestError) =>
    await socket.send({ jsonrpc: '2.0', id, error: error.toErrorResponse() })
  const faultIn = (key: string, chars: number) => {
    if (open.has(key)) return 'the id is in use'
    const isTooMuch = open.size >= MAX_OPEN_REQUESTS || (open.size > 0 && openChars + chars > MAX_OPEN_CHARS)
    return isTooMuch ? 'too many requests wait for an answer' : undefined
  }
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
          const key = keyOf(message)
          if (!('method' in message)) {
            if (key !== undefined && askedIds.delete(key)) return controller.enqueue(message)
            continue
          }
          if (key === undefined) return controller.enqueue(message)
          const fault = faultIn(key, frame.length)
          if (fault === undefined) {
            open.set(key, frame.length)
            openChars += frame.length
            return controller.enqueue(message)
          }
          await refuse(Object(message).id, RequestError.invalidRequest(undefined, fault))
        }
      },
    }),
    writable: new WritableStream<AnyMessage>({
      async write(message) {
        const key = keyOf(message)
        if (key !== undefined && 'method' in message) askedIds.add(key)
        await socket.send(message)
        if (key === undefined || 'method' in message) return
        openChars -= open.get(key) ?? 0
        open.delete(key)
      },
    }),
  }
}

function parseFrame(frame: string): { message: AnyMessage; error?: never } | { message?: never; error: RequestError } {
  try {
    const message = parseUntrustedJson(frame)
    if (typeof message !== 'object' || message === null || Array.isArray(message))
      return { error: RequestError.invalidRequest(undefined, 'send one JSON object per frame') }
    // The SDK repeats a message of another form in its answer, whatever its size.
    if (!Envelope.safeParse(message).success)
      return { error: RequestError.invalidRequest(undefined, 'send jsonrpc, method and id as JSON-RPC 2.0 has them') }
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the SDK checks the rest
    return { message: message as AnyMessage }
  } catch (error) {
    const why = error instanceof ComplexJson ? error.message : 'it is not JSON'
    return { error: RequestError.parseError(undefined, why) }
  }
}

const Envelope = z.looseObject({
  jsonrpc: z.literal('2.0'),
  method: z.string().max(MAX_NAME_CHARS).optional(),
  id: z.union([z.string().max(MAX_NAME_CHARS), z.number(), z.null()]).optional(),
})

/** Numbers and texts are different ids. */
function keyOf(message: object): string | undefined {
  const id: unknown = 'id' in message ? message.id : undefined
  return typeof id === 'string' || typeof id === 'number' || id === null ? JSON.stringify(id) : undefined
}
