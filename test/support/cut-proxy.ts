/** A TCP proxy in front of a server, whose connections can be cut, held and slowed down without either side knowing why. */
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { Socket } from 'node:net'
import { Transform } from 'node:stream'
import { takeTime } from './take-time.ts'

const DIRECTIONS = ['requests', 'answers'] as const
/** The direction of bytes: `requests` to the server, `answers` back. */
export type Direction = (typeof DIRECTIONS)[number]

/**
 * `url` leads to `target`; `cut` closes every connection, `down` also new ones until `up`, and `refuse` only these. `hold` lets no byte through in one
 * direction until `up`, which delivers them, also if the sender has closed its connection meanwhile: so does a network that
 * repeats what it has lost. `slow` delays each piece by so many milliseconds.
 */
export async function startCutProxy(target: URL) {
  const sockets = new Set<Socket>()
  const held = new Map<Direction, PromiseWithResolvers<void>>()
  let isDown = false
  let delayMs = 0
  const link = (direction: Direction) =>
    new Transform({
      transform: (chunk, _, pass) => {
        const arrive = async () => {
          if (delayMs > 0) await takeTime(delayMs)
          await held.get(direction)?.promise
          pass(null, chunk)
        }
        if (delayMs > 0 || held.has(direction)) void arrive()
        else pass(null, chunk)
      },
    })
  const listener = createServer((client) => {
    if (isDown) return void client.destroy()
    const upstream = connect(Number(target.port), target.hostname)
    for (const [one, other, direction] of [
      [client, upstream, 'requests'],
      [upstream, client, 'answers'],
    ] as const) {
      sockets.add(one)
      const way = one.pipe(link(direction))
      way.on('end', () => other.destroySoon()).pipe(other)
      one.on('error', () => {}).on('close', () => (sockets.delete(one), way.end()))
    }
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address() as { port: number }
  const cut = () => sockets.forEach((socket) => socket.destroy())
  const refuse = () => void (isDown = true)
  const down = () => (refuse(), cut())
  const release = () => {
    for (const { resolve } of held.values()) resolve()
    held.clear()
  }
  const up = () => {
    isDown = false
    delayMs = 0
    release()
  }
  return {
    down,
    refuse,
    up,
    url: `http://127.0.0.1:${port}`,
    cut,
    hold: (direction: Direction) => void held.set(direction, held.get(direction) ?? Promise.withResolvers<void>()),
    slow: (ms: number) => void (delayMs = ms),
    close: async () => (up(), cut(), void listener.close()),
  }
}
