/** Where the card of A2A says that clients reach the server. */
import { expect, test } from 'vitest'
import { sendRaw } from '../../support/a2a.ts'
import { startServerHere } from '../../support/server-here.ts'

const PUBLIC_URL = 'https://agents.example.com/base'

const urlsBelow = (url: string) => [`${url}/a2a`, `${url}/a2a/v1`]

/** The URLs of both cards. */
async function urlsIn(serverUrl: string): Promise<string[][]> {
  const paths = ['/.well-known/agent-card.json', '/a2a/v1/extendedAgentCard']
  const cards = await Promise.all(paths.map((path) => sendRaw(serverUrl + path, undefined, { method: 'GET' })))
  return cards.map(({ body }) => body.supportedInterfaces.map(({ url }: { url: string }) => url))
}

test('the cards have the public URL if there is one, and otherwise that of the request', async () => {
  await using server = await startServerHere({ OPENHANDS_PROTOCOLS: 'a2a', OPENHANDS_PUBLIC_URL: PUBLIC_URL })
  expect(await urlsIn(server.url)).toEqual([urlsBelow(PUBLIC_URL), urlsBelow(PUBLIC_URL)])
  await using other = await startServerHere({ OPENHANDS_PROTOCOLS: 'a2a' })
  expect(await urlsIn(other.url)).toEqual([urlsBelow(other.url), urlsBelow(other.url)])
})
