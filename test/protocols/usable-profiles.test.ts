/** Lists of profiles have those that a key may use, whatever they are called: models, skills or profiles. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { setStageHere } from '../support/agent.ts'
import { KEY } from '../support/server.ts'

const stage = await setStageHere(() => ({ text: 'Read.' }), { OPENHANDS_PROTOCOLS: 'openai,a2a' })
afterAll(() => stage[Symbol.asyncDispose]())
const { server } = stage

beforeAll(async () => {
  const llm_config = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
  for (const name of ['default', 'coder', 'reviewer']) await server.call('PUT', `/profiles/${name}`, { llm_config })
})

async function get(path: string, key: string) {
  const headers = { authorization: `Bearer ${key}`, 'a2a-version': '1.0' }
  const response = await fetch(server.url + path, { headers })
  return { status: response.status, body: JSON.parse(await response.text()) }
}

async function listsOf(key: string): Promise<{ [list: string]: string[] }> {
  const models = (await get('/v1/models', key)).body.data
  const { items } = (await get('/profiles', key)).body
  const { skills } = (await get('/a2a/v1/extendedAgentCard', key)).body
  const sorted = (names: string[]) => names.toSorted()
  return {
    models: sorted(models.map(({ id }: { id: string }) => id)),
    profiles: sorted(items.map(({ name }: { name: string }) => name)),
    skills: sorted(skills.map(({ id }: { id: string }) => id)),
  }
}

const same = (...names: string[]) => ({ models: names, profiles: names, skills: names })

async function keyFor(limits: object): Promise<string> {
  const fields = { name: 'limited', scopes: ['read', 'write'], ...limits }
  return (await server.call('POST', '/keys', fields)).body.key
}

const isModel = async (name: string, key: string) => (await get(`/v1/models/${name}`, key)).status

test('a key that is limited to profiles sees these, and one of a user sees all', async () => {
  expect(await listsOf(KEY)).toEqual(same('coder', 'default', 'reviewer'))
  expect(await listsOf(await keyFor({ user_id: 'ada' }))).toEqual(same('coder', 'default', 'reviewer'))
  const key = await keyFor({ profiles: ['coder', 'gone'] })
  expect(await listsOf(key)).toEqual(same('coder'))
  expect([await isModel('coder', key), await isModel('reviewer', key)]).toEqual([200, 404])
})

test('a key that is limited to conversations sees the profiles of these', async () => {
  const made = await server.call('POST', '/conversations', { profile: 'reviewer' })
  const key = await keyFor({ conversations: [made.body.id] })
  expect(await listsOf(key)).toEqual(same('reviewer'))
  expect([await isModel('reviewer', key), await isModel('coder', key)]).toEqual([200, 404])
  // One that was created without a profile has the settings of the server.
  const plain = await keyFor({ conversations: [await stage.create()] })
  expect(await listsOf(plain)).toEqual(same('default'))
  // It may not see the conversation.
  const other = await keyFor({ conversations: [made.body.id], user_id: 'ada' })
  const { models, profiles } = await listsOf(other)
  expect({ models, profiles }).toEqual({ models: [], profiles: [] })
})
