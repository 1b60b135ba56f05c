/**
 * The connections of the local listener. The only file that decides which these are: by the listener that has accepted
 * them, and never by an address, which a proxy on this machine has as well.
 */
import type { Server, Socket } from 'node:net'

export class LocalConnections {
  readonly #sockets = new WeakSet<object>()

  /** Call it before this server listens locally, and only there: other listeners pass their connections to it. */
  watch(server: Server): void {
    // First: the HTTP server makes itself the owner of each connection that it is given.
    server.prependListener('connection', (socket: AcceptedSocket) => {
      if (socket.server === server) this.#sockets.add(socket)
    })
  }

  has(socket: object): boolean {
    return this.#sockets.has(socket)
  }
}

/** Node sets it to the server that has accepted the connection; its types do not know it. */
type AcceptedSocket = Socket & { readonly server?: unknown }
