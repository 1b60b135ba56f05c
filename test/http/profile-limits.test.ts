/** What a key that is limited to profiles may send: every route says so, and no field that gives rights passes any of them. */
import Fastify from 'fastify'
import { afterAll, describe, expect, test } from 'vitest'
import { addAccess } from '../../src/http/guards/authorize.ts'
import { profileLimitOf } from '../../src/http/guards/profile-limits.ts'
import { scopedRoutes } from '../../src/http/guards/route-scopes.ts'
import { connectAs } from '../support/socket.ts'
import { expectProblem, setHttp } from './fixtures.ts'
import type { Case } from './operations.ts'
import { document, isPublic, operations, pathOf, takesJson, validBody, validHeaders } from './operations.ts'
import type { Schema } from './samples.ts'
import { sampleOf } from './samples.ts'

const http = await setHttp({ script: () => ({ text: 'Looks good.' }) })
const url = await http.listen()
afterAll(() => http[Symbol.asyncDispose]())

const llm_config = { model: 'scripted', base_url: http.bench.model.baseUrl, api_key: 'the-key-of-a-model' }
const profile = 'reviewer'
await http.call('PUT', `/profiles/${profile}`, { llm_config })
const scopes = ['read', 'write', 'approve', 'files', 'commands']
const made = await http.call('POST', '/keys', { name: 'a test', scopes, profiles: [profile] })
const key = { authorization: `Bearer ${made.body.key}` }
const { id } = (await http.call('POST', '/conversations', { profile }, key)).body as { id: string }

/** Fields that say what an agent may do, where it works, whom it asks and what that may cost. */
const RIGHTS = new Set(
  (
    'llm_config llm_configs model title_model agents tools system_prompt system_prompt_extensions user_id hooks mcp env secrets ' +
    'network permission_mode confirmation_mode permission_rules allowed_tools additional_directories max_iteration_per_run ' +
    'max_budget_usd limits compaction file_checkpointing generate_title project enable_message_rewrite_hooks'
  ).split(' '),
)

const schemas = document.components.schemas
const propertiesOf = ({ operation }: Case): Readonly<Record<string, Schema>> => {
  const { schema } = operation.requestBody!.content['application/json']!
  const named = schema.$ref === undefined ? schema : schemas[schema.$ref.split('/').at(-1)!]!
  return named.properties ?? {}
}

const cases = operations
  .filter((one) => !isPublic(one) && takesJson(one))
  .flatMap((one) =>
    Object.entries(propertiesOf(one)).flatMap(([field, schema]) =>
      RIGHTS.has(field) ? [[`${one.name} with ${field}`, one, field, schema] as const] : [],
    ),
  )

describe('a field that gives rights is refused:', () => {
  test.each(cases)('%s', async (_, one, field, schema) => {
    const needed = one.operation.operationId === 'createConversation' ? { profile } : (validBody(one) as object)
    const body = { ...needed, [field]: sampleOf(schema, schemas) }
    const answer = await http.call(one.method, pathOf(one, id), body, { ...validHeaders(one), ...key })
    expectProblem(answer, 403, 'forbidden')
  })

  test('on a WebSocket, too', async () => {
    const socket = await connectAs(url, `/conversations/${id}/ws`, { headers: key })
    const input_hash = 'a'.repeat(64)
    const frames = [
      { type: 'run', permission_mode: 'bypass' },
      { type: 'run', allowed_tools: ['Bash'] },
      { type: 'message', message: 'Hello', run: true, run_options: { permission_mode: 'bypass' } },
      {
        type: 'answer',
        request_id: id,
        answer: {
          kind: 'permission',
          decisions: [{ tool_use_id: 't', input_hash, behavior: 'allow', remember: true }],
        },
      },
    ]
    for (const [at, frame] of frames.entries()) socket.say({ ...frame, id: `${at}` })
    for (const at of frames.keys())
      expect(await socket.until((frame) => frame.id === `${at}`)).toMatchObject({ type: 'problem', error: 'forbidden' })
    socket.close()
  })
})

test('what is promised to such a key passes', async () => {
  const config = { title: 'B', labels: ['x'], metadata: { a: 1 }, archived: false }
  expect((await http.call('PUT', `/conversations/${id}/config`, config, key)).status).toBe(200)
  const run = { message: 'Hello', run: true }
  expect((await http.call('POST', `/conversations/${id}/messages`, run, key)).status).toBe(202)
  const denied = { ...run, run_options: { allowed_tools: ['Bash'] } }
  expectProblem(await http.call('POST', `/conversations/${id}/messages`, denied, key), 403, 'forbidden')
  const waited = await http.call('POST', `/conversations/${id}/run`, { max_steps: 3, wait: true }, key)
  expect([200, 409]).toContain(waited.status)
  expect((await http.call('POST', `/conversations/${id}/fork`, { title: 'C' }, key)).status).toBe(201)
})

test('it ends no replay, and has none', async () => {
  const replay = { conversation_ids: [id], max_cost_usd: 1 }
  const started = await http.call('POST', '/replays', replay)
  expect(started.status, started.text).toBe(201)
  expectProblem(await http.call('DELETE', `/replays/${started.body.id}`, undefined, key), 403, 'forbidden')
  await http.call('DELETE', `/replays/${started.body.id}`)
})

test('a route that does not say what such a key may send cannot be registered', async () => {
  const app = Fastify()
  addAccess(app)
  const handler = () => 'done'
  expect(() => app.post('/new', { config: { scopes: ['write'] } }, handler)).toThrow('POST /new has no limit')
  expect(() => app.post('/other', { config: { scopes: ['write'], ofProfiles: 'free' } }, handler)).not.toThrow()
  for (const route of scopedRoutes()) {
    const [method = '', path = ''] = route.split(' ')
    expect(profileLimitOf(method, path), route).toBeDefined()
  }
})
