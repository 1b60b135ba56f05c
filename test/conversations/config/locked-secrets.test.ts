import { expect, test } from 'vitest'
import { Problem } from '../../../src/contract/problem.ts'
import { ConversationSecrets } from '../../../src/conversations/config/secrets.ts'
import { createRedactor } from '../../../src/security/redaction/redactor.ts'
import type { SecretValues } from '../../../src/storage/storage.ts'

test('an authorization of an MCP server does not take the place of secrets that no key decrypts', async () => {
  const written: SecretValues[] = []
  const secrets = new ConversationSecrets({
    redactor: createRedactor(),
    keptValues: {},
    locked: new Problem('storage_failed', 'They were encrypted with another key.'),
    write: async (values) => void written.push(values),
    id: 'c',
    logger: { error: () => {} },
  })
  const kept = { url: 'https://mcp.example', tokens: { access_token: 'a-token-of-the-server', token_type: 'Bearer' } }
  await secrets.oauthOf('mine').write(kept)
  expect(secrets.oauthOf('mine').read()).toEqual(kept)
  expect(written).toEqual([])
  await secrets.put({ TOKEN: 'what-a-client-has-sent' })
  expect(written).toMatchObject([{ env: { TOKEN: 'what-a-client-has-sent' }, mcp_oauth: { mine: expect.any(String) } }])
  expect(secrets.names()).toEqual(['TOKEN'])
})
