/** An endpoint that accepts connections and never says a word: no handshake, no answer. */
import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'

export type SilentEndpoint = AsyncDisposable & {
  readonly port: number
  /** Resolves when somebody has connected. */
  readonly connected: Promise<unknown>
}

export async function startSilentEndpoint(): Promise<SilentEndpoint> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => void sockets.add(socket.on('error', () => {}))).listen(0, '127.0.0.1')
  const connected = once(server, 'connection')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    connected,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}
