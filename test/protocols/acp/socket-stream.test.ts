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

  const writer = writable.getWriter()
  await writer.write({ jsonrpc: '2.0', id: 0, result: {} })
  client.send(JSON.stringify({ jsonrpc: '2.0', id: 257, method: 'session/list' }))
  expect((await reader.read()).value).toMatchObject({ id: 257 })

  // What is no message, or answers nothing, does not reach the SDK, which would repeat it or log it.
  const large = 'x'.repeat(100_000)
  const wrong = [
    { jsonrpc: '2.0', id: true, method: 'm', params: large },
    { jsonrpc: '2.0', id: large, method: 'm' },
    { jsonrpc: '2.0', id: 1000, method: large },
    { id: 1000, method: 'm', params: large },
  ]
  for (const message of wrong) client.send(JSON.stringify(message))
  client.send(JSON.stringify({ jsonrpc: '2.0', id: 'x\n{"msg":"audit"}', result: {} }))
  await writer.write({ jsonrpc: '2.0', id: 'asked', method: 'session/request_permission', params: {} })
  for (const id of ['other', 'asked', 'asked']) client.send(JSON.stringify({ jsonrpc: '2.0', id, result: {} }))
  client.send(JSON.stringify({ jsonrpc: '2.0', method: 'session/cancel' }))
  expect((await reader.read()).value).toMatchObject({ id: 'asked', result: {} })
  expect((await reader.read()).value).toMatchObject({ method: 'session/cancel' })
  await until('the refusals', async () => refused.filter(({ id }) => id === null).length === wrong.length)
  expect(JSON.stringify(refused).length).toBeLessThan(10_000)
  client.terminate()
  server.close()
})
