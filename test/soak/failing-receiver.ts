/** A receiver of callbacks that sometimes fails: it refuses, takes its time, or breaks the connection. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Random } from '../support/random.ts'

export type FailingReceiver = AsyncDisposable & { readonly url: string }

export async function startFailingReceiver(random: Random): Promise<FailingReceiver> {
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      const chance = random.below(40)
      if (chance === 0) response.destroy()
      else if (chance === 1) setTimeout(() => response.writeHead(204).end(), 1000)
      else response.writeHead(chance < 4 ? 500 : 204).end()
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}
