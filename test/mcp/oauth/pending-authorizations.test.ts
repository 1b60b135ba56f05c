/** Authorizations that users were asked for. */
import { expect, test } from 'vitest'
import { PendingAuthorizations } from '../../../src/mcp/oauth/pending-authorizations.ts'

const asked = (state: string, conversationId: string) => ({
  state,
  conversationId,
  server: 'safe',
  url: 'https://mcp.example.com/mcp',
  verifier: 'v',
  redirectUrl: 'http://127.0.0.1/mcp/oauth/callback',
  discovery: { authorizationServerUrl: 'https://login.example.com' },
})

test('each is taken once, and by those only that it is meant for', () => {
  const pending = new PendingAuthorizations()
  pending.add(asked('a', 'one'))
  expect(pending.take('a', ({ conversationId }) => conversationId === 'two')).toBeUndefined()
  expect(pending.take('a')).toMatchObject({ conversationId: 'one' })
  expect(pending.take('a')).toBeUndefined()
})

test('a server has one, and the oldest of many make room', () => {
  const pending = new PendingAuthorizations()
  pending.add(asked('former', 'one'))
  pending.add(asked('new', 'one'))
  expect(pending.take('former')).toBeUndefined()
  for (let at = 0; at < 2000; at++) pending.add(asked(`state-${at}`, `conversation-${at}`))
  expect(pending.take('new')).toBeUndefined()
  expect(pending.take('state-0')).toBeDefined()
})
