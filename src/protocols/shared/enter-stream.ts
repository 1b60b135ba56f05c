import type { GatewayDeps } from './gateway-deps.ts'

/** Takes a slot of the streams of a conversation, and counts the stream. Returns a function that ends both. Throws a `Problem` if none is free. */
export function enterStream({ streamSlots, metrics }: GatewayDeps, id: string): () => void {
  const leave = streamSlots.take(id)
  const countEnd = metrics.streamOpened('sse')
  return () => {
    countEnd({ lagged: false })
    leave()
  }
}
