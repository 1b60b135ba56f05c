/** Messages of a WebSocket: what a client may send at a time. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { SocketConnection } from '../../../src/http/socket/connection.ts'
import { socketStream } from '../../../src/protocols/acp/socket-stream.ts'
import { until } from '../../support/until.ts'

test('requests beyond those that may wait for an answer are refused, and what asks nothing is read', async () => {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 })
  await once(server, 'listening')
  const accepted = once(server, 'connection')
  const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const refused: { id: unknown; error: object }[] = []
  client.on('message', (data: Buffer) => refused.push(JSON.parse(data.toString())))
  const [[ws]] = (await Promise.all([accepted, once(client, 'open')])) as [[WebSocket], unknown]
  const { readable, writable } = socketStream(new SocketConnection(ws))
  const reader = readable.getReader()
  for (let id = 0; id < 257; id++) client.send(JSON.stringify({ jsonrpc: '2.0', id, method: 'session/list' }))
  client.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'session/list' }))
  client.send(JSON.stringify({ jsonrpc: '2.0', method: 'session/cancel' }))
  for (let id = 0; id < 256; id++) expect((await reader.read()).value).toMatchObject({ id })
  expect((await reader.read()).value).toEqual({ jsonrpc: '2.0', method: 'session/cancel' })
  await until('the refusal', async () => refused.length > 1)
  expect(refused).toMatchObject([
    { id: 256, error: { code: -32_600 } },
    { id: 1, error: { code: -32_600 } },
  ])

  await writable.getWriter().write({ jsonrpc: '2.0', id: 0, result: {} })
  client.send(JSON.stringify({ jsonrpc: '2.0', id: 257, method: 'session/list' }))
  expect((await reader.read()).value).toMatchObject({ id: 257 })
  client.terminate()
  server.close()
})
