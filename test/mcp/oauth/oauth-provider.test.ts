/** What the SDK receives about the client and the user while it authorizes one MCP server. */
import { expect, test } from 'vitest'
import type { KeptAuthorization } from '../../../src/mcp/oauth/kept-authorization.ts'
import { OauthProvider } from '../../../src/mcp/oauth/oauth-provider.ts'

const MCP_URL = 'https://mcp.example.com/mcp'

function createProvider() {
  let kept: KeptAuthorization | undefined
  const store = {
    read: () => kept,
    write: async (changed: KeptAuthorization) => {
      kept = changed
    },
  }
  const redirectUrl = 'http://127.0.0.1:8000/mcp/oauth/callback'
  return new OauthProvider({ conversationId: 'any', url: MCP_URL, oauth: {}, store, redirectUrl, onRequest: () => {} })
}

test('a client whose registration lists another address is not registered again', async () => {
  const provider = createProvider()
  await provider.saveClientInformation?.({ client_id: 'client', redirect_uris: ['https://other.example.com/callback'] })
  expect(provider.clientInformation()).toMatchObject({ client_id: 'client', redirect_uris: [provider.redirectUrl] })
})

test.each(['user@', ':password@'])('a user is not sent to an address with credentials: %s', async (credentials) => {
  const provider = createProvider()
  const verifier = 'a-verifier'
  provider.saveCodeVerifier(verifier)
  provider.saveDiscoveryState({ authorizationServerUrl: 'https://login.example.com' })
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier))
  const challenge = Buffer.from(digest).toString('base64url')
  const query = String(new URLSearchParams({ state: 'a-state', code_challenge: challenge }))
  expect(() => provider.redirectToAuthorization(new URL(`https://login.example.com/?${query}`))).not.toThrow()
  const url = new URL(`https://${credentials}login.example.com/?${query}`)
  expect(() => provider.redirectToAuthorization(url)).toThrow(/no address that a user can be sent to/)
})
