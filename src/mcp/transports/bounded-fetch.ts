/** Bounds what an HTTP server of the Model Context Protocol may answer: the length of each message, and their rate. */
import type { UrlFetch } from '../../security/guarded-fetch.ts'
import { MAX_MESSAGE_BYTES, Pace } from './pace.ts'

const LINE_FEED = 10

/** `permit` throws if the network policy of the conversation does not permit the address. */
export function boundedFetch(fetch: UrlFetch, permit: (url: URL) => Promise<void>): UrlFetch {
  const pace = new Pace()
  return async (url, init) => {
    await permit(new URL(url))
    const response = await fetch(url, init)
    if (!response.body) return response
    const isStream = /^text\/event-stream/i.test(response.headers.get('content-type') ?? '')
    const body = response.body.pipeThrough(bounded(pace, isStream))
    const { status, statusText, headers } = response
    const answer = new Response(body, { status, statusText, headers })
    Object.defineProperty(answer, 'url', { value: response.url })
    return answer
  }
}

/** An event stream may be endless; each event of it is bounded, and counts as a message. */
function bounded(pace: Pace, isStream: boolean): TransformStream<Uint8Array, Uint8Array> {
  let bytes = 0
  let wasLineEnd = false
  return new TransformStream({
    async transform(chunk, controller) {
      let events = 0
      if (isStream)
        for (const byte of chunk) {
          if (byte === LINE_FEED && wasLineEnd) {
            events++
            bytes = 0
          } else bytes++
          // Carriage returns may precede line feeds.
          if (byte !== CARRIAGE_RETURN) wasLineEnd = byte === LINE_FEED
        }
      else bytes += chunk.length
      if (bytes > MAX_MESSAGE_BYTES)
        throw new Error(`The server sent a message of more than ${MAX_MESSAGE_BYTES} bytes.`)
      const ms = pace.take(isStream ? events : 1, chunk.length)
      if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms))
      controller.enqueue(chunk)
    },
  })
}

const CARRIAGE_RETURN = 13
