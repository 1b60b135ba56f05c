/** A server of models in the test: of a vendor, or one of this machine. */
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export type ModelServer = AsyncDisposable & {
  readonly port: number
  /** Each request: `GET /v1/models Bearer sk-…`. */
  readonly asked: string[]
}

type Answer = readonly [status: number, body: unknown]

export const listOf = (...ids: string[]): Answer => [200, { object: 'list', data: ids.map((id) => ({ id })) }]

/** `answer` returns undefined for a request that is never answered. */
export async function startModelServer(
  answer: (path: string, key: string, response: ServerResponse) => Answer | undefined,
  host = '127.0.0.1',
): Promise<ModelServer> {
  const asked: string[] = []
  const server = createServer((request, response) => {
    const key = request.headers.authorization ?? ''
    asked.push(`${request.method} ${request.url} ${key}`.trim())
    const answered = answer(request.url ?? '', key, response)
    if (answered === undefined) return
    const [status, body] = answered
    response.writeHead(status, { 'content-type': 'application/json', location: '/elsewhere/v1/models' })
    response.end(typeof body === 'string' ? body : JSON.stringify(body))
  }).listen(0, host)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    port,
    asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
