/** An SSE subscriber that keeps what it is sent. */
import { createSseDecoder } from '../../src/lib/sse-decoder.ts'
import { KEY } from './server.ts'

export type Frame = { readonly event: string; readonly id: string; readonly data: any } // eslint-disable-line typescript/no-explicit-any

export type Subscriber = {
  readonly frames: readonly Frame[]
  /** The first frame, seen already or to come, that fits. Throws when the stream ends without one. */
  readonly until: (fits: (frame: Frame) => boolean, timeoutMs?: number) => Promise<Frame>
  readonly close: () => void
  /** Resolves when the stream is over, whoever ended it. */
  readonly ended: Promise<void>
}

/** Resolves when the first bytes are there: what happens from then on is seen. */
export async function subscribe(url: string, path: string, headers: Record<string, string> = {}): Promise<Subscriber> {
  const abort = new AbortController()
  const response = await fetch(url + path, {
    headers: { authorization: `Bearer ${KEY}`, accept: 'text/event-stream', ...headers },
    signal: abort.signal,
  })
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  const decoder = createSseDecoder()
  const frames: Frame[] = []
  const waiting = new Set<() => void>()
  let isOver = false
  const take = (text: string) => {
    for (const { event, id, data } of decoder.push(text)) frames.push({ event, id, data: JSON.parse(data) })
    for (const wake of waiting) wake()
  }

  take((await reader.read()).value ?? '')
  const ended = (async () => {
    try {
      for (let next = await reader.read(); !next.done; next = await reader.read()) take(next.value)
    } catch (error) {
      if (!abort.signal.aborted && !(error instanceof TypeError)) throw error // a TypeError is a connection that broke
    } finally {
      isOver = true
      for (const wake of waiting) wake()
    }
  })()

  return {
    frames,
    ended,
    close: () => abort.abort(),
    async until(fits, timeoutMs = 20_000) {
      const deadline = Date.now() + timeoutMs
      for (let at = 0; ;) {
        for (; at < frames.length; at++) if (fits(frames[at]!)) return frames[at]!
        if (isOver || Date.now() >= deadline)
          throw new Error(`no such frame; seen: ${frames.map((frame) => frame.event).join(' ')}`)
        await new Promise<void>((resolve) => {
          const wake = () => {
            waiting.delete(wake)
            clearTimeout(timer)
            resolve()
          }
          const timer = setTimeout(wake, Math.max(1, deadline - Date.now()))
          waiting.add(wake)
        })
      }
    },
  }
}
