/** Things on the host that nothing in a sandbox without its network may reach, each noting who does. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { networkInterfaces } from 'node:os'

export type Canaries = Disposable & {
  /** TCP on every address of the machine. */
  readonly port: number
  /** UDP on the same port. */
  readonly abstractSocket: string
  readonly addresses: readonly string[]
  readonly reached: readonly string[]
}

export async function setCanaries(): Promise<Canaries> {
  const reached: string[] = []
  const note = (how: string) => () => reached.push(how)
  const tcp = createServer((socket) => {
    reached.push(`TCP ${socket.localAddress}`)
    socket.on('error', () => {}).end('reached')
  })
  // A server without an address listens on all of both families.
  await once(tcp.listen(0), 'listening')
  const { port } = tcp.address() as AddressInfo
  const udp = createSocket('udp4').on('message', note('UDP'))
  await new Promise<void>((resolve) => udp.bind(port, '127.0.0.1', resolve))
  const abstractSocket = `agent-server-canary-${port}`
  const abstract = createServer((socket) => {
    reached.push('abstract Unix socket')
    socket.on('error', () => {}).end('reached')
  })
  await once(abstract.listen(`\0${abstractSocket}`), 'listening')
  const own = Object.values(networkInterfaces()).flatMap((each) => each ?? [])
  return {
    port,
    abstractSocket,
    addresses: own.filter(({ address }) => !address.startsWith('fe80:')).map(({ address }) => address),
    reached,
    [Symbol.dispose]() {
      tcp.close()
      udp.close()
      abstract.close()
    },
  }
}
