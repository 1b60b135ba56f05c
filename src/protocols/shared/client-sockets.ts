/** The WebSockets on which clients of protocols send requests: a limited number for each key, until the server stops. */
import type { FastifyContextConfig, FastifyInstance, FastifyRequest } from 'fastify'
import type { z } from 'zod'
import { CLOSE_CODES } from '../../contract/socket.ts'
import { accessOf } from '../../http/guards/authorize.ts'
import type { SocketConnection } from '../../http/socket/connection.ts'
import { socketRoute } from '../../http/socket/socket-route.ts'
import { createStreamSlots } from '../../http/streams/stream-slots.ts'
import type { Metrics } from '../../telemetry/metrics.ts'

/** Clients of one key at a time. */
const MAX_PER_KEY = 64

type ClientSocketsOptions = {
  /** The path, which messages name. */
  readonly path: string
  readonly metrics: Pick<Metrics, 'streamOpened'>
  /** The last frame of a socket that ends. */
  readonly lastWords: (body: object) => object
}

type ClientSocketRoute<Query extends z.ZodType> = ClientSocketsOptions & {
  readonly config: FastifyContextConfig
  readonly query: Query
  /** Resolves when the client has disconnected. */
  readonly serve: (socket: SocketConnection, request: FastifyRequest, query: z.infer<Query>) => Promise<void>
}

export function addClientSockets<Query extends z.ZodType>(app: FastifyInstance, route: ClientSocketRoute<Query>): void {
  const { path, config, query: querystring, lastWords, serve } = route
  const sockets = new ClientSockets(app, route)
  app.route({
    url: path,
    ...socketRoute(app.firstFrameKey, {
      config,
      schema: { querystring },
      errorFrame: lastWords,
      check: async ({ request }) => sockets.check(request),
      serve: (socket, { query, request }) => sockets.serve(socket, request, () => serve(socket, request, query)),
    }),
  })
}

class ClientSockets {
  readonly #metrics: ClientSocketsOptions['metrics']
  readonly #slots: ReturnType<typeof createStreamSlots>
  readonly #open = new Set<SocketConnection>()

  constructor(app: FastifyInstance, { path, metrics, lastWords }: ClientSocketsOptions) {
    this.#metrics = metrics
    this.#slots = createStreamSlots(MAX_PER_KEY, `this key for ${path}`)
    // The agents work on, and clients connect again.
    app.addHook('preClose', async () => {
      const words = lastWords({ error: 'server_closing' })
      await Promise.all([...this.#open].map((socket) => socket.end(words, CLOSE_CODES.server_closing)))
    })
  }

  /** Checks before the upgrade that a slot is free; it is taken afterwards. Throws a `Problem`. */
  check(request: FastifyRequest): void {
    this.#take(request)()
  }

  /** Throws a `Problem` if no slot is free, and what `work` throws. */
  async serve(socket: SocketConnection, request: FastifyRequest, work: () => Promise<void>): Promise<void> {
    using stack = new DisposableStack()
    stack.defer(this.#take(request))
    this.#open.add(socket)
    stack.defer(() => this.#open.delete(socket))
    const onEnd = this.#metrics.streamOpened('websocket')
    stack.defer(() => onEnd({ lagged: false }))
    await work()
  }

  #take(request: FastifyRequest): () => void {
    return this.#slots.take(accessOf(request).key?.id ?? '')
  }
}
