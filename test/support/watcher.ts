/** A client that never gives up: it follows a conversation over any number of lost connections, from its last id on. */
import type { TestServer } from './server.ts'
import type { Subscriber } from './stream.ts'
import { isStarting, subscribe } from './stream.ts'
import { takeTime } from './take-time.ts'

export type Watcher = {
  /** Every durable event it was sent, over all connections. */
  readonly seen: () => readonly any[] // eslint-disable-line typescript/no-explicit-any
  readonly connections: () => number
  /** Throws what was no lost connection: a refused cursor, say. */
  readonly stop: () => Promise<void>
}

const RETRY_MS = 20

export function watch(server: Pick<TestServer, 'url'>, id: string): Watcher {
  const streams: Subscriber[] = []
  const stopping = new AbortController()
  // The stored events have a seq: a transient one is read with the id that stood before it.
  const seen = () =>
    streams.flatMap(({ frames }) => frames.map(({ data }) => data).filter(({ seq }) => seq !== undefined))

  const connect = async (): Promise<Subscriber | undefined> => {
    const last = seen().at(-1)
    const path = `/conversations/${id}/events/stream?deltas=true`
    try {
      return last
        ? await subscribe(server.url, path, { 'last-event-id': String(last.seq) })
        : await subscribe(server.url, `${path}&after_seq=0`)
    } catch (error) {
      // A TypeError is a connection that could not be made, or broke.
      if (!(error instanceof TypeError) && !isStarting(error)) throw error
      return undefined
    }
  }
  const watching = (async () => {
    while (!stopping.signal.aborted) {
      const stream = await connect()
      if (!stream) {
        await takeTime(RETRY_MS)
        continue
      }
      streams.push(stream)
      if (stopping.signal.aborted) stream.close()
      await stream.ended
    }
  })()
  watching.catch(() => {}) // `stop` reports it
  return {
    seen,
    connections: () => streams.length,
    async stop() {
      stopping.abort()
      streams.at(-1)?.close()
      await watching
    },
  }
}
