/** Answers requests whose URL cannot be decoded: no route is known, and so the form of their errors follows from the path alone. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

declare module 'fastify' {
  interface FastifyInstance {
    urlErrors: UrlErrors
  }
}

type SendError = FastifyInstance['errorHandler']
type SendOwnError = (error: Error, request: FastifyRequest, reply: FastifyReply) => FastifyReply

export class UrlErrors {
  readonly #forms = new Map<string, SendError>()
  readonly #send: SendOwnError

  /** `send` answers below all paths that have no other form. */
  constructor(send: SendOwnError) {
    this.#send = send
  }

  add(path: string, send: SendError): void {
    this.#forms.set(path, send)
  }

  send(error: Error, request: FastifyRequest, reply: FastifyReply): void {
    const [path = ''] = request.url.split('?')
    const owners = [...this.#forms.keys()].filter((each) => path === each || path.startsWith(`${each}/`))
    const owner = owners.toSorted((one, other) => other.length - one.length)[0] ?? ''
    // No hook has run.
    void reply.header('x-request-id', request.id)
    const send = this.#forms.get(owner)
    if (send) send(error, request, reply)
    else this.#send(error, request, reply)
  }
}
