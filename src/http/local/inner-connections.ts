/**
 * Connections on which this process asks its own server, for a client that speaks another protocol: each request has the
 * permissions of that client, and passes through the same checks, limits and logs as any other.
 */
import type { Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { duplexPair } from 'node:stream'
import type { AuthenticatedClient } from '../guards/auth.ts'

export class InnerConnections {
  /** The clients, by the connection on which the server is asked. */
  readonly clients = new WeakMap<object, AuthenticatedClient>()

  /** `address`: that of the client. */
  open(server: Server, client: AuthenticatedClient, address: string): Duplex {
    const [clientSide, serverSide] = duplexPair()
    // What an HTTP server calls of a socket. A client that reads nothing is disconnected by its own connection.
    Object.assign(serverSide, { remoteAddress: address, setTimeout: () => serverSide })
    // The other side alone would learn of an end, and keep what it has not sent.
    clientSide.once('close', () => serverSide.destroy())
    this.clients.set(serverSide, client)
    server.emit('connection', serverSide)
    return clientSide
  }
}
