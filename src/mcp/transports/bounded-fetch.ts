/**
 * Bounds what an HTTP server of the Model Context Protocol may answer, and what it can make this process do: the size of
 * each message, their rate, and how many requests are open.
 */
import { ComplexJson } from '../../lib/json/untrusted-json.ts'
import type { UrlFetch } from '../../security/guarded-fetch.ts'
import { JsonGauge } from './json-gauge.ts'
import { MAX_MESSAGE_BYTES, Pace } from './pace.ts'
import { timerMs } from '../../lib/bounded-wait.ts'

/** A server that pings makes this process answer: without limits, that would use up its sockets. */
const MAX_OPEN_REQUESTS = 32
const MAX_REQUESTS_PER_SECOND = 50
const BURST_REQUESTS = 200

/** The size of the answer to a request that failed: it is shown, and not parsed. */
const MAX_ERROR_BYTES = 16 * 1024

export type BoundedFetchOptions = {
  readonly fetch: UrlFetch
  /** Throws if the network policy of the conversation does not permit the address. */
  readonly permit: (url: URL) => Promise<void>
  /** The server has exceeded a limit, as a clause: the connection should end. */
  readonly onFault: (reason: string) => void
}

export function boundedFetch({ fetch, permit, onFault }: BoundedFetchOptions): UrlFetch {
  const pace = new Pace()
  const requests = new Pace({ perSecond: MAX_REQUESTS_PER_SECOND, burst: BURST_REQUESTS })
  let open = 0
  const fail = (reason: string): never => {
    onFault(reason)
    throw new Error(`The server was given up: ${reason}.`)
  }
  return async (url, init) => {
    if (open >= MAX_OPEN_REQUESTS) fail(`it leaves more than ${MAX_OPEN_REQUESTS} requests unanswered`)
    open++
    const over = once(() => open--)
    try {
      await wait(requests.take(1, 0))
      init?.signal?.throwIfAborted()
      await permit(new URL(url))
      const response = await fetch(url, init)
      if (!response.body) {
        over()
        return response
      }
      // Uncompressed was asked for: a few bytes could unfold to any number.
      if (/[^\s]/.test(response.headers.get('content-encoding')?.replace(/^identity$/i, '') ?? '')) {
        await response.body.cancel()
        fail('it sent a compressed message, which was not asked for')
      }
      return withBody(response, response.body.pipeThrough(limiterOf(response, pace, fail)), over)
    } catch (error) {
      over()
      throw error
    }
  }
}

/** Calls `onOver` when the body was read or given up. */
function withBody(response: Response, limitedBody: ReadableStream<Uint8Array>, onOver: () => void): Response {
  const reader = limitedBody.getReader()
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read()
          if (!done) return controller.enqueue(value)
          onOver()
          controller.close()
        } catch (error) {
          onOver()
          controller.error(error)
        }
      },
      async cancel(reason) {
        onOver()
        await reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
  const { status, statusText, headers } = response
  const answer = new Response(body, { status, statusText, headers })
  Object.defineProperty(answer, 'url', { value: response.url })
  return answer
}

function limiterOf(response: Response, pace: Pace, fail: (reason: string) => never) {
  if (!response.ok) return firstBytes(MAX_ERROR_BYTES)
  return limitBody(pace, /^text\/event-stream/i.test(response.headers.get('content-type') ?? ''), fail)
}

/** The rest is left out. */
function firstBytes(max: number): TransformStream<Uint8Array, Uint8Array> {
  let remainingBytes = max
  return new TransformStream({
    transform(chunk, controller) {
      controller.enqueue(chunk.subarray(0, remainingBytes))
      remainingBytes -= chunk.length
      if (remainingBytes <= 0) controller.terminate()
    },
  })
}

/** An event stream may be endless; each event of it is bounded, and counts as a message. */
function limitBody(
  pace: Pace,
  isStream: boolean,
  fail: (reason: string) => never,
): TransformStream<Uint8Array, Uint8Array> {
  const gauge = new JsonGauge()
  let bytes = 0
  let wasLineEnd = false
  const takeAll = (chunk: Uint8Array): number => {
    let events = 0
    for (const byte of chunk) {
      bytes++
      gauge.take(byte)
      if (isStream && byte === LINE_FEED && wasLineEnd) {
        events++
        bytes = 0
        gauge.reset()
      }
      // Carriage returns may precede line feeds.
      if (byte !== CARRIAGE_RETURN) wasLineEnd = byte === LINE_FEED
    }
    if (bytes > MAX_MESSAGE_BYTES) fail(`it sent a message of more than ${MAX_MESSAGE_BYTES} bytes`)
    return isStream ? events : 1
  }
  return new TransformStream({
    async transform(chunk, controller) {
      try {
        await wait(pace.take(takeAll(chunk), chunk.length))
      } catch (error) {
        throw error instanceof ComplexJson ? fail(`it sent a message that ${error.message}`) : error
      }
      controller.enqueue(chunk)
    },
  })
}

const [LINE_FEED, CARRIAGE_RETURN] = [0x0a, 0x0d]

const wait = async (ms: number) => {
  if (ms > 0) await new Promise((resolve) => setTimeout(resolve, timerMs(ms)))
}

function once(work: () => void): () => void {
  let isDone = false
  return () => {
    if (!isDone) work()
    isDone = true
  }
}
