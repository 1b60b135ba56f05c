/** Profiles: named parts of create requests, stored encrypted; keys that are limited to them; and external ids. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import type { CreateKey } from '../../src/contract/key.ts'
import { Profiles } from '../../src/conversations/profiles/profiles.ts'
import { expectProblem, setHttp } from './fixtures.ts'

const http = await setHttp({ script: () => ({ text: 'Looks good.' }) })
afterAll(() => http[Symbol.asyncDispose]())

const LLM = { model: 'scripted', base_url: http.bench.model.baseUrl, api_key: 'the-key-of-a-model' }
const REVIEWER = {
  description: 'Reviews a change',
  llm_config: LLM,
  tools: ['Finish'],
  system_prompt: 'You review changes.',
  permission_mode: 'default',
  labels: ['review'],
  secrets: { GITHUB_TOKEN: 'ghp-a-secret-value' },
  max_iteration_per_run: 7,
} as const

const put = (name: string, profile: object) => http.call('PUT', `/profiles/${name}`, profile)
const create = (body: object, headers = {}) => http.call('POST', '/conversations', body, headers)

async function keyFor(scopes: CreateKey['scopes'], limits: Partial<CreateKey>): Promise<Record<string, string>> {
  const { status, body, text } = await http.call('POST', '/keys', { name: 'a test', scopes, ...limits })
  expect(status, text).toBe(201)
  return { authorization: `Bearer ${body.key}` }
}

describe('profiles', () => {
  test('without any there is one, with the settings of the server', async () => {
    expect((await http.call('GET', '/profiles')).body.items).toEqual([
      { name: 'default', description: 'The settings of the server.' },
    ])
    expect((await http.call('GET', '/profiles/default')).body).toMatchObject({ name: 'default' })
    const { status, body } = await create({ profile: 'default', llm_config: LLM })
    expect([status, body.profile, body.max_iteration_per_run]).toEqual([201, 'default', 500])
  })

  test('are stored as a whole, encrypted, and shown with masked secrets', async () => {
    const made = await put('reviewer', REVIEWER)
    expect(made.status, made.text).toBe(201)
    expect(made.body).toMatchObject({ name: 'reviewer', tools: ['Finish'], llm_config: { api_key: '**********' } })
    expect(made.body.secrets).toEqual({ GITHUB_TOKEN: '**********' })
    const stored = await readFile(join(http.bench.dataDir, 'tables.db'))
    expect(stored.includes('reviewer')).toBe(true)
    for (const hidden of ['You review', 'ghp-a-secret', 'the-key-of']) expect(stored.includes(hidden)).toBe(false)

    expectProblem(await put('reviewer', made.body), 400, 'invalid_request')
    const { name: _, created_at: __, updated_at: ___, ...sentBack } = made.body
    const masked = await put('reviewer', sentBack)
    expectProblem(masked, 400, 'invalid_request')
    expect(masked.body.message).toContain('masked')
    const replaced = await put('reviewer', { ...REVIEWER, labels: ['review', 'new'] })
    expect([replaced.status, replaced.body.created_at]).toEqual([200, made.body.created_at])
    expect((await http.call('GET', '/profiles')).body.items).toEqual([
      {
        name: 'reviewer',
        description: 'Reviews a change',
        created_at: made.body.created_at,
        updated_at: replaced.body.updated_at,
      },
    ])
    expectProblem(await create({ profile: 'default' }), 404, 'profile_not_found')
    expectProblem(await put('bad', { tools: ['NoSuchTool'] }), 400, 'invalid_request')
    expectProblem(await put('bad', { initial_message: 'hello' }), 400, 'invalid_request')
    expectProblem(await put('-bad', {}), 400, 'invalid_request')
  })

  test('give a conversation their fields, of which those of the request win as a whole', async () => {
    await put('reviewer', REVIEWER)
    const { status, body, text } = await create({ profile: 'reviewer', labels: ['mine'], title: 'One' })
    expect(status, text).toBe(201)
    expect(body).toMatchObject({
      profile: 'reviewer',
      labels: ['mine'],
      title: 'One',
      tools: ['Finish'],
      max_iteration_per_run: 7,
      state: { permission_mode: 'default' },
    })
    expect((await http.call('GET', `/conversations/${body.id}/secrets`)).body.items).toEqual(['GITHUB_TOKEN'])
    const ran = await create({ profile: 'reviewer', initial_message: 'Review it.', run: true, wait: true })
    expect(ran.body.result).toMatchObject({ final_text: 'Looks good.' })

    // The key of the profile goes to no endpoint of the request.
    const { model } = LLM
    const other = await create({ profile: 'reviewer', llm_config: { model, base_url: 'http://127.0.0.1:1/v1' } })
    expect(other.body.llm_config).not.toHaveProperty('api_key')
    expectProblem(await create({ profile: 'nobody' }), 404, 'profile_not_found')
  })

  test('survive a restart, and cannot be read with another key or as another profile', async () => {
    const { profiles: table, keys } = http.bench.storage
    await put('reviewer', REVIEWER)
    const again = new Profiles({ table, keys: keys.material })
    expect(await again.get('reviewer')).toMatchObject({ system_prompt: 'You review changes.' })
    const { keys: rows } = await table.read()
    const { value } = rows.find(({ id }) => id === 'reviewer')!
    await table.change(await table.version(), 'swapped', value)
    await expect(new Profiles({ table, keys: keys.material }).get('swapped')).rejects.toThrow(/another key/)
    await expect(new Profiles({ table, keys: ['some other key'] }).get('reviewer')).rejects.toThrow(/another key/)
    expect((await http.call('DELETE', '/profiles/swapped')).status).toBe(204)
    expectProblem(await http.call('DELETE', '/profiles/swapped'), 404, 'profile_not_found')
  })

  test('are seen by their names without the scope admin, and changed by nobody else', async () => {
    await put('reviewer', REVIEWER)
    const key = await keyFor(['read', 'write', 'approve', 'secrets'], {})
    const list = await http.call('GET', '/profiles', undefined, key)
    expect(list.body.items.map(({ name }: { name: string }) => name)).toEqual(['reviewer'])
    for (const [method, body] of [['GET'], ['PUT', REVIEWER], ['DELETE']] as const)
      expectProblem(await http.call(method, '/profiles/reviewer', body, key), 403, 'forbidden')
  })
})

describe('a key that is limited to profiles', () => {
  const limits = { profiles: ['reviewer'] }

  test('cannot have scopes that give it more', async () => {
    for (const scope of ['admin', 'secrets'])
      expectProblem(
        await http.call('POST', '/keys', { name: 'a test', scopes: ['write', scope], ...limits }),
        400,
        'invalid_request',
      )
  })

  test('creates conversations of these alone, with nothing that gives rights', async () => {
    await put('reviewer', REVIEWER)
    await put('deploy', REVIEWER)
    const key = await keyFor(['read', 'write', 'approve', 'commands', 'files'], limits)
    expect((await http.call('GET', '/me', undefined, key)).body.profiles).toEqual(['reviewer'])
    expect((await http.call('GET', '/profiles', undefined, key)).body.items).toHaveLength(1)
    const tool = { name: 'show', description: 'Shows', input_schema: { type: 'object' } }
    const allowed = { profile: 'reviewer', title: 'A', labels: ['x'], metadata: { a: 1 }, client_tools: [tool] }
    const made = await create({ ...allowed, initial_message: 'Hello' }, key)
    expect(made.status, made.text).toBe(201)
    const refused: object[] = [
      {},
      { profile: 'deploy' },
      { profile: 'default' },
      { profile: 'reviewer', tools: ['Bash'] },
      { profile: 'reviewer', llm_config: LLM },
      { profile: 'reviewer', permission_mode: 'bypass' },
      { profile: 'reviewer', max_iteration_per_run: 500 },
      { profile: 'reviewer', user_id: 'another' },
      { profile: 'reviewer', system_prompt: 'Do anything.' },
      { profile: 'reviewer', allowed_tools: [] },
    ]
    for (const body of refused) expectProblem(await create(body, key), 403, 'forbidden')

    const at = `/conversations/${made.body.id}`
    const ask = (method: string, path: string, body: object) => http.call(method, at + path, body, key)
    expect((await ask('PUT', '/config', { title: 'B', labels: [] })).status).toBe(200)
    for (const update of [{ permission_mode: 'bypass' }, { llm_config: { temperature: 1 } }, { max_budget_usd: 1 }])
      expectProblem(await ask('PUT', '/config', update), 403, 'forbidden')
    for (const run of [{ permission_mode: 'bypass' }, { allowed_tools: ['Bash'] }, { model: 'other' }])
      expectProblem(await ask('POST', '/run', run), 403, 'forbidden')
    expectProblem(await ask('PUT', '/permission-rules', { allow: ['Bash'], deny: [], ask: [] }), 403, 'forbidden')
    expectProblem(await ask('POST', '/fork', { llm_config: { model: 'other' } }), 403, 'forbidden')
    expectProblem(await ask('POST', '/confirmation', { enabled: false }), 403, 'forbidden')
    const hooks = { PreToolUse: [{ hooks: [{ id: 'a' }] }] }
    expectProblem(await ask('PUT', '/client-hooks/mine', { hooks }), 403, 'forbidden')
    for (const answer of [
      { kind: 'network', behavior: 'allow', remember: true },
      {
        kind: 'permission',
        decisions: [{ tool_use_id: 't', input_hash: 'a'.repeat(64), behavior: 'allow', remember: true }],
      },
    ])
      expectProblem(await ask('POST', '/requests/01a226cf-0000-7000-8000-000000000000', answer), 403, 'forbidden')
    const replay = { conversation_ids: [made.body.id], max_cost_usd: 1 }
    expectProblem(await http.call('POST', '/replays', replay, key), 403, 'forbidden')
  })

  test('sees conversations of these alone', async () => {
    await put('reviewer', REVIEWER)
    const key = await keyFor(['read', 'write'], { profiles: ['reviewer'], user_id: 'user-17' })
    const plain = await create({ llm_config: LLM, user_id: 'user-17' })
    const made = await create({ profile: 'reviewer' }, key)
    expect(made.body.user_id).toBe('user-17')
    const seen = async () =>
      (await http.call('GET', '/conversations', undefined, key)).body.items.map(({ id }: { id: string }) => id)
    expect(await seen()).toEqual([made.body.id])
    await http.call('POST', `/conversations/${plain.body.id}/run`, { wait: true })
    const usageOf = async (headers?: Record<string, string>) =>
      (await http.call('GET', '/usage?by=conversation', undefined, headers)).body
    expect((await usageOf()).items.map(({ group }: { group: string }) => group)).toContain(plain.body.id)
    expect(await usageOf(key)).toMatchObject({ items: [], total: { answers: 0 } })
    expectProblem(
      await http.call('POST', `/conversations/${plain.body.id}/messages`, { message: 'Hello' }, key),
      404,
      'conversation_not_found',
    )
    const fork = await http.call('POST', `/conversations/${made.body.id}/fork`, {}, key)
    expect([fork.status, fork.body.profile]).toEqual([201, 'reviewer'])
    expect(await seen()).toEqual([fork.body.id, made.body.id])
  })

  test('gets no answer of others by their Idempotency-Key', async () => {
    await put('reviewer', REVIEWER)
    const key = await keyFor(['read', 'write'], { profiles: ['reviewer'] })
    const once = { 'idempotency-key': 'the-same-one' }
    const [own, other] = [
      await create({ profile: 'reviewer' }, { ...once, ...key }),
      await create({ profile: 'reviewer' }, once),
    ]
    expect([own.status, other.status]).toEqual([201, 201])
    expect(own.body.id).not.toBe(other.body.id)
  })
})

describe('external ids', () => {
  const named = { llm_config: LLM, external_id: 'thread 1 / ü' }

  test('make one conversation of requests that race, and find it afterwards', async () => {
    const racing = await Promise.all(Array.from({ length: 5 }, () => create(named)))
    expect(racing.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 200, 200, 200, 201])
    const [id, ...others] = new Set(racing.map(({ body }) => body.id as string))
    expect(others).toEqual([])
    const found = await create({ external_id: named.external_id, initial_message: 'Hello', title: 'Other' })
    expect([found.status, found.body.id, found.body.last_seq, found.body.title]).toEqual([
      200,
      id,
      racing[0]!.body.last_seq,
      undefined,
    ])
    expect(found.body.external_id).toBe(named.external_id)
  })

  test('are of their user alone, and free again after a delete', async () => {
    const first = await create({ ...named, user_id: 'user-17' })
    expect(first.status).toBe(201)
    expect((await create({ ...named, user_id: 'user-18' })).status).toBe(201)
    const key = await keyFor(['read', 'write'], { user_id: 'user-17' })
    expect((await create(named, key)).body.id).toBe(first.body.id)
    expect((await http.call('DELETE', `/conversations/${first.body.id}`)).status).toBe(204)
    const second = await create(named, key)
    expect([second.status, second.body.id === first.body.id]).toEqual([201, false])
    expect((await create(named, key)).body.id).toBe(second.body.id)
    const fork = await http.call('POST', `/conversations/${second.body.id}/fork`, {})
    expect(fork.body).not.toHaveProperty('external_id')
  })

  test('are not made again by a late retry with the Idempotency-Key of one that was deleted', async () => {
    const retried = { ...named, external_id: 'retried' }
    const keyed = (key: string) => create(retried, { 'idempotency-key': key })
    for (const key of ['first-key', 'second-key']) {
      const { status, body } = await keyed(key)
      expect(status).toBe(201)
      await http.call('DELETE', `/conversations/${body.id}`)
      const again = await keyed(key)
      expect(again.body).toMatchObject({ error: 'conversation_deleted', details: { conversation_id: body.id } })
    }
    expect((await create(retried)).status).toBe(201)
  })

  test('cannot be taken by the id of a conversation', async () => {
    const { body } = await create({ ...named, external_id: 'taken' })
    expectProblem(await create({ llm_config: LLM, id: body.id }), 400, 'invalid_request')
    expectProblem(await create({ ...named, id: '0199a1f0-5c3e-7d12-9b1a-2f6d8c40a7e1' }), 400, 'invalid_request')
  })

  test('find no conversation that the key does not see', async () => {
    await put('reviewer', REVIEWER)
    const key = await keyFor(['read', 'write'], { profiles: ['reviewer'] })
    await create({ ...named, external_id: 'hidden' })
    const refused = await create({ profile: 'reviewer', external_id: 'hidden' }, key)
    expectProblem(refused, 409, 'conversation_exists')
    expect(refused.text).not.toContain('"id"')
  })
})

test('an external id leads to no conversation of another profile, and says nothing to a key that reads nothing', async () => {
  await put('reviewer', REVIEWER)
  await put('deploy', REVIEWER)
  const limited = await keyFor(['read', 'write'], { profiles: ['reviewer'] })
  const made = await create({ profile: 'reviewer', external_id: 'order-1', initial_message: 'A secret' }, limited)
  expect(made.status, made.text).toBe(201)
  expectProblem(await create({ profile: 'deploy', external_id: 'order-1' }), 409, 'conversation_exists')
  const again = { profile: 'reviewer', external_id: 'order-1' }
  expect(await create(again)).toMatchObject({ status: 200, body: { id: made.body.id, preview: 'A secret' } })
  const blind = await create(again, await keyFor(['write'], {}))
  expect([blind.status, blind.body.id, blind.body.preview]).toEqual([200, made.body.id, undefined])
})
