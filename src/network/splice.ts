/** Passes bytes between two sockets in both directions, with backpressure, until both have ended or neither says anything. */
import type { Socket } from 'node:net'

export type SpliceLimits = {
  /** Milliseconds without a byte in either direction. */
  readonly idleMs: number
  /** The same once one side has ended and the other has not. */
  readonly halfOpenMs: number
}

/** Both sockets have been made with `allowHalfOpen`. Resolves when both are closed. */
export async function splice(client: Socket, target: Socket, { idleMs, halfOpenMs }: SpliceLimits): Promise<void> {
  const pair = [client, target]
  const endBoth = () => pair.forEach((socket) => socket.destroy())
  const join = async (from: Socket, to: Socket) => {
    from.on('error', () => {})
    from.setTimeout(idleMs, endBoth)
    from.once('end', () => pair.forEach((socket) => socket.setTimeout(halfOpenMs)))
    // The end of what it says is passed on by the pipe.
    from.pipe(to)
    // Not `once` of node:events, which rejects for an error.
    if (!from.closed) await new Promise((resolve) => from.once('close', resolve))
    // A connection that broke off breaks the other one: an end would make what came look whole.
    if (!from.readableEnded) to.resetAndDestroy()
  }
  await Promise.all([join(client, target), join(target, client)])
}
