/** Changing the master key: add the new one, move clients over, take the old one out; nothing is lost on the way. */
import { expect, test } from 'vitest'
import { bash, setStage } from '../support/agent.ts'

const OLD = 'the-old-master-key-0123'
const NEW = 'the-new-master-key-4567'
const SECRET = 'a-secret-worth-keeping'
const FIRST = 'first-secret-key-8901'
const SECOND = 'second-secret-key-2345'

test('a new key takes the old one’s place without a client or a secret being lost', async () => {
  const script = {
    replies: [{ turns: [bash('[ "$TOKEN" = a-secret-"worth"-keeping ] && echo same'), { text: 'Done.' }] }],
  }
  await using stage = await setStage(script, { env: { OPENHANDS_MASTER_KEY: OLD } })
  const { server } = stage
  const as = (key: string) => ({ authorization: `Bearer ${key}` })
  const llm_config = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
  const created = await server.call('POST', '/conversations', { llm_config, secrets: { TOKEN: SECRET } }, as(OLD))
  const { id } = created.body
  const status = async (key: string) => (await server.call('GET', `/conversations/${id}`, undefined, as(key))).status
  const works = async (key: string) => {
    const message = { role: 'user', content: 'compare' }
    await server.call('POST', `/conversations/${id}/messages`, { message }, as(key))
    const { body } = await server.call('POST', `/conversations/${id}/run`, { wait: true }, as(key))
    expect(body.result.stop_reason).toBe('completed')
    const path = `/conversations/${id}/events?types=ToolResult&order=desc&limit=1`
    expect(JSON.stringify((await server.call('GET', path, undefined, as(key))).body.items)).toContain('same')
  }

  await server.restart('SIGTERM', { OPENHANDS_MASTER_KEY: `${NEW},${OLD}` })
  expect([await status(OLD), await status(NEW)]).toEqual([200, 200])
  await works(OLD)
  await works(NEW)

  // Until here the secrets were encrypted with the master key. Their own key changes in the same way.
  for (const key of [FIRST, `${SECOND},${FIRST}`, SECOND]) {
    await server.restart('SIGTERM', { OPENHANDS_MASTER_KEY: NEW, OPENHANDS_SECRET_KEY: key })
    expect([await status(OLD), await status(NEW)]).toEqual([401, 200])
  }
  await works(NEW)
  expect(server.output()).not.toMatch(new RegExp(`${OLD}|${NEW}|${SECRET}|${FIRST}|${SECOND}`))
})
