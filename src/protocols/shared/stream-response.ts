/** Sends the events of a response as SSE. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { keyEnded } from '../../access/access.ts'
import { logChange } from '../../http/request/request-log.ts'
import { createStreamWriter } from '../../http/streams/stream-writer.ts'

/** A text is sent as it is. */
type Frame = string | { readonly type?: string; readonly [field: string]: unknown }

type Stream = { readonly request: FastifyRequest; readonly reply: FastifyReply; readonly signal: AbortSignal }

/**
 * Sends what `frames` yields; an empty list is a comment, which keeps the connection open. An error after the first byte is the
 * last event. Resolves to what `frames` returns, or to undefined after an error.
 */
export async function streamResponse<T>(
  { request, reply, signal }: Stream,
  frames: () => AsyncGenerator<readonly Frame[], T, void>,
  errorFrame: (error: unknown) => Frame,
): Promise<T | undefined> {
  const all = frames()
  // An error before the first frame is an answer with its status.
  let next = await all.next()
  const headers = {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
    connection: 'close',
  }
  // The hook that writes it does not run for a response that is written here.
  logChange(request, reply)
  reply.hijack()
  reply.raw.writeHead(200, { ...withoutUnset(reply.getHeaders()), ...headers })
  const writer = createStreamWriter(reply.raw)
  try {
    for (; !next.done; next = await all.next()) {
      if (signal.aborted) break
      const text = next.value.map(frameOf).join('')
      if (!writer.write(text === '' ? ': keep-alive\n\n' : text)) await writer.drained(signal)
    }
    // The client is there, and must not take what it has for the whole.
    if (signal.aborted && request.access?.ended.aborted) writer.write(frameOf(errorFrame(keyEnded())))
    return next.done ? next.value : undefined
  } catch (error) {
    if (!signal.aborted) writer.write(frameOf(errorFrame(error)))
    return undefined
  } finally {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- nobody reads what it returns
    await all.return(undefined as T).catch(() => {})
    reply.raw.end()
  }
}

const frameOf = (frame: Frame): string =>
  typeof frame === 'string'
    ? `data: ${frame}\n\n`
    : `${frame.type === undefined ? '' : `event: ${frame.type}\n`}data: ${JSON.stringify(frame)}\n\n`

const withoutUnset = (headers: ReturnType<FastifyReply['getHeaders']>) =>
  Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined))
