/** Which protocols a server speaks besides its API. */
import { expect, test } from 'vitest'
import { KEY, launch } from '../support/server.ts'
import { startServerHere } from '../support/server-here.ts'

test('a protocol that is turned off has no routes, and the others work', async () => {
  await using server = await startServerHere({ OPENHANDS_PROTOCOLS: 'ag-ui' })
  const off = { status: 404, body: { error: 'not_found' } }
  expect(await server.call('GET', '/v1/models')).toMatchObject(off)
  expect(await server.call('POST', '/ai/chat', {})).toMatchObject(off)
  expect(await server.call('POST', '/mcp', {})).toMatchObject(off)
  expect(await server.call('GET', '/.well-known/agent-card.json')).toMatchObject(off)
  expect(await server.call('GET', '/acp')).toMatchObject(off)
  expect(await server.call('POST', '/ag-ui/default', {})).toMatchObject({ status: 400 })
  await server.restart('SIGTERM', { OPENHANDS_PROTOCOLS: 'none' })
  expect(await server.call('POST', '/ag-ui/default', {})).toMatchObject(off)
  await server.restart('SIGTERM', { OPENHANDS_PROTOCOLS: 'openai, ai-sdk' })
  expect(await server.call('GET', '/v1/models')).toMatchObject({ status: 200 })
  const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
  expect((await fetch(`${server.url}/ai/chat`, { method: 'POST', headers, body: '{}' })).status).toBe(400)
})

test('A2A must be turned on', async () => {
  await using server = await startServerHere()
  expect(await server.call('POST', '/a2a', {})).toMatchObject({ status: 404, body: { error: 'not_found' } })
  expect(await server.call('GET', '/.well-known/agent-card.json')).toMatchObject({ status: 404 })
  expect(await server.call('GET', '/v1/models')).toMatchObject({ status: 200 })
})

test('a protocol that does not exist stops the start, with the names of those that do', async () => {
  const { exited, output } = launch(['serve'], {
    env: { OPENHANDS_MASTER_KEY: 'a'.repeat(64), OPENHANDS_PROTOCOLS: 'grpc' },
  })
  expect(await exited).not.toBe(0)
  expect(output()).toMatch(/OPENHANDS_PROTOCOLS.*openai.*ai-sdk.*ag-ui.*mcp.*acp.*a2a/)
})
