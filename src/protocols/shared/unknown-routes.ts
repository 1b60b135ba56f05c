/** Gives the errors of routes that do not exist the form of a protocol, if they are below one of its paths. */
import type { FastifyInstance } from 'fastify'

/** The error handler of `app`, which it has already, gets what the server throws for them, and URLs that cannot be decoded. */
export async function ownUnknownRoutes(app: FastifyInstance, ...paths: readonly string[]): Promise<void> {
  for (const prefix of paths) app.urlErrors.add(prefix, app.errorHandler)
  for (const prefix of paths) await app.register(async (below) => void below.setNotFoundHandler(notReached), { prefix })
}

const notReached = async () => {
  throw new Error('the server has refused the route before')
}
