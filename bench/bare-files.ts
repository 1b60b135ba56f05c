/** Files over a bare Node server, streamed and nothing else: the minimum cost of sending and receiving. Runs in a separate process. */
import { createReadStream, createWriteStream } from 'node:fs'
import { rename, stat } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'

const directory = process.argv[2]!

const server = createServer((request, response) => {
  // A client that disconnects early does not count as a failure.
  answer(join(directory, request.url!)).catch((error: unknown) => response.destroy(error as Error))

  async function answer(path: string): Promise<void> {
    if (request.method === 'PUT') {
      await pipeline(request, createWriteStream(`${path}.tmp`, { flush: true }))
      await rename(`${path}.tmp`, path)
      return void response.end()
    }
    response.setHeader('content-length', (await stat(path)).size)
    await pipeline(createReadStream(path), response)
  }
})
server.listen(0, '127.0.0.1', () => process.send!(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
