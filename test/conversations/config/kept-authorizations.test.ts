/** The authorizations of MCP servers among the secrets of a conversation. */
import { expect, test } from 'vitest'
import { ConversationSecrets } from '../../../src/conversations/config/secrets.ts'
import { createRedactor } from '../../../src/security/redaction/redactor.ts'

const kept = (access_token: string) => ({
  url: 'https://mcp.example.com',
  tokens: { access_token, token_type: 'Bearer' },
})

test('one that cannot be stored on a full disk is in effect, is redacted, and is stored with the next change', async () => {
  let isFull = true
  const written: unknown[] = []
  const faults: unknown[] = []
  const redactor = createRedactor()
  const secrets = new ConversationSecrets({
    id: 'id',
    redactor,
    keptValues: {},
    logger: { error: (fault: unknown) => void faults.push(fault) },
    write: async (values) => {
      if (isFull) throw Object.assign(new Error('no space left'), { code: 'ENOSPC' })
      written.push(values)
    },
  })
  const store = secrets.oauthOf('safe')
  await store.write(kept('token-of-the-server'))
  expect(store.read()?.tokens?.access_token).toBe('token-of-the-server')
  expect(redactor.redact('It is token-of-the-server.')).not.toContain('token-of-the-server')
  expect(JSON.stringify(faults)).not.toContain('token-of-the-server')
  expect(faults).toHaveLength(1)
  isFull = false
  // At the same time: neither change is lost.
  await Promise.all([secrets.put({ NAME: 'value-of-it' }), store.write(kept('second-token-of-it'))])
  expect(written.at(-1)).toMatchObject({
    env: { NAME: 'value-of-it' },
    mcp_oauth: { safe: expect.stringContaining('second-token-of-it') },
  })
})
