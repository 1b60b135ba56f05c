/** A TCP proxy in front of a server, whose connections can be cut without either side knowing why. */
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { Socket } from 'node:net'

/** `url` leads to `target`; `cut` closes every connection, `down` also new ones until `up`. */
export async function startCutProxy(target: URL) {
  const sockets = new Set<Socket>()
  let isDown = false
  const listener = createServer((client) => {
    if (isDown) return void client.destroy()
    const upstream = connect(Number(target.port), target.hostname)
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(one)
      one.on('error', () => {}).on('close', () => (sockets.delete(one), other.destroy()))
      one.pipe(other)
    }
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address() as { port: number }
  const cut = () => sockets.forEach((socket) => socket.destroy())
  const down = () => ((isDown = true), cut())
  const up = () => void (isDown = false)
  return { down, up, url: `http://127.0.0.1:${port}`, cut, close: async () => (cut(), void listener.close()) }
}
