import { once } from 'node:events'
import http from 'node:http'
import type { ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setImmediate as yieldToLoop } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createStreamWriter } from '../../src/http/streams/stream-writer.ts'

/** Streams with this function, and returns what the client received. */
async function receive(stream: (response: ServerResponse) => Promise<void>): Promise<string> {
  const streamed = Promise.withResolvers<void>()
  await using server = http.createServer((_, response) => {
    response.writeHead(200)
    stream(response)
      .then(streamed.resolve, streamed.reject)
      .finally(() => response.end())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const request = http.get({ port, host: '127.0.0.1', agent: false })
  const [response] = await once(request, 'response')
  const [received] = await Promise.all([text(response), streamed.promise])
  return received
}

test('pieces that come together leave together, and one that comes alone leaves at once', async () => {
  const received = await receive(async (response) => {
    const socket = response.socket!
    const writer = createStreamWriter(response)
    /** Returns after which of the pieces of one turn the socket waited for its end. */
    const writeTogether = async (...pieces: readonly string[]) => {
      const waits = pieces.map((piece) => {
        writer.write(piece)
        return socket.writableCorked === 1
      })
      await yieldToLoop()
      expect(socket.writableCorked).toBe(0)
      return waits
    }
    expect(await writeTogether('one ')).toEqual([false])
    expect(await writeTogether('two '), 'after one alone').toEqual([false])
    expect(await writeTogether('three ', 'four ', 'five ')).toEqual([false, true, true])
    expect(await writeTogether('six ', 'seven '), 'after many').toEqual([true, true])
    expect(await writeTogether('eight '), 'after many').toEqual([true])
    expect(await writeTogether('nine')).toEqual([false])
  })
  expect(received).toBe('one two three four five six seven eight nine')
})

test('a writer that is full says when there is room again', async () => {
  const piece = Buffer.alloc(1024 * 1024, 'x')
  const received = await receive(async (response) => {
    const writer = createStreamWriter(response)
    for (let written = 0; written < 8; written += 1)
      if (!writer.write(piece)) await writer.drained(AbortSignal.timeout(60_000))
  })
  expect(received).toHaveLength(8 * piece.length)
})
