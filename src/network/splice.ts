/**
 * Forwards bytes between two sockets in both directions, with backpressure, until both have ended or neither sends
 * anything.
 */
import type { Socket } from 'node:net'

export type SpliceLimits = {
  /** Milliseconds without a byte in either direction. */
  readonly idleMs: number
  /** The same after one side has ended and the other has not. */
  readonly halfOpenMs: number
}

/** `answer`: bytes of the client are dropped, and the first of them ends the target's side of the connection. */
export type Direction = 'both' | 'answer'

/** Both sockets were created with `allowHalfOpen`. Resolves when both are closed. */
export async function splice(
  client: Socket,
  target: Socket,
  { idleMs, halfOpenMs }: SpliceLimits,
  direction: Direction = 'both',
): Promise<void> {
  const pair = [client, target]
  const endBoth = () => pair.forEach((socket) => socket.destroy())
  const join = async (from: Socket, to: Socket) => {
    from.on('error', () => {})
    from.setTimeout(idleMs, endBoth)
    from.once('end', () => pair.forEach((socket) => socket.setTimeout(halfOpenMs)))
    if (from === client && direction === 'answer') drop(from, () => to.end())
    // The pipe forwards the end of its output.
    else from.pipe(to)
    // `once` of node:events would reject for an error.
    if (!from.closed) await new Promise((resolve) => from.once('close', resolve))
    // If one connection breaks, destroy the other: an orderly end would make the data look complete.
    if (!from.readableEnded) to.resetAndDestroy()
  }
  await Promise.all([join(client, target), join(target, client)])
}

/** Continues reading and discards the data. */
function drop(from: Socket, onFirst: () => void): void {
  if (from.readableEnded) onFirst()
  else from.once('data', onFirst).once('end', onFirst).resume()
}
