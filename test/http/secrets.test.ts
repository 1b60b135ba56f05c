/** The routes of secrets: what they accept, what they never return, and which events they write. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { MAX_SECRET_BYTES, MAX_SECRETS } from '../../src/contract/secret.ts'
import { uuid7 } from '../../src/lib/uuid7.ts'
import { override } from '../support/override.ts'
import { call, tool } from '../conversations/fixtures.ts'
import { expectProblem, setHttp } from './fixtures.ts'

const VALUE = 'a-value-that-nobody-sees'

async function setUp(options: Parameters<typeof setHttp>[0] = {}) {
  const http = await setHttp(options)
  const id = await http.create()
  const path = `/conversations/${id}/secrets`
  const put = (secrets: Record<string, unknown>) => http.call('PUT', path, { secrets })
  const names = async () => (await http.call('GET', path)).body
  const updates = async () => (await http.call('GET', `/conversations/${id}/events?types=SecretsUpdate`)).body.items
  return { http, id, path, put, names, updates, [Symbol.asyncDispose]: () => http[Symbol.asyncDispose]() }
}

test('merges new values, and returns and logs names only', async () => {
  await using it = await setUp()
  expect(await it.names()).toEqual({ items: [], next_page_id: null })
  expect((await it.put({ TOKEN: VALUE, B_2: 'another-value' })).body).toEqual({
    items: ['B_2', 'TOKEN'],
    next_page_id: null,
  })
  expect((await it.put({ _c: 'third-value', TOKEN: `${VALUE}-2` })).body.items).toEqual(['B_2', 'TOKEN', '_c'])
  expect(await it.names()).toEqual({ items: ['B_2', 'TOKEN', '_c'], next_page_id: null })
  expect(await it.updates()).toMatchObject([
    { source: 'user', added: ['B_2', 'TOKEN'], removed: [] },
    { source: 'user', added: ['TOKEN', '_c'], removed: [] },
  ])
})

test('an unchanged value changes nothing and is not logged again', async () => {
  await using it = await setUp()
  for (const _ of [1, 2]) expect((await it.put({ TOKEN: VALUE })).status).toBe(200)
  expect((await it.put({})).status).toBe(200)
  expect(await it.updates()).toHaveLength(1)
})

test('a deleted one is gone, and one that there never was is deleted as well', async () => {
  await using it = await setUp()
  await it.put({ TOKEN: VALUE, OTHER: VALUE })
  for (const key of ['TOKEN', 'TOKEN', 'NEVER', 'no%20name', 'PATH', '__proto__', 'toString']) {
    expect((await it.http.call('DELETE', `${it.path}/${key}`)).status, key).toBe(204)
  }
  expect((await it.names()).items).toEqual(['OTHER'])
  expect((await it.updates()).slice(1)).toMatchObject([{ added: [], removed: ['TOKEN'] }])
})

test('a conversation can be made with secrets, which its own first words do not tell', async () => {
  await using http = await setHttp()
  const id = await http.create({
    secrets: { TOKEN: VALUE },
    title: `with ${VALUE}`,
    initial_message: { role: 'user', content: VALUE },
  })
  const { items } = (await http.call('GET', `/conversations/${id}/events`)).body
  expect(items.map((event: { type: string }) => event.type)).toEqual(['SystemInit', 'SecretsUpdate', 'UserMessage'])
  expect((await http.call('GET', `/conversations/${id}/secrets`)).body.items).toEqual(['TOKEN'])
  const view = await http.call('GET', `/conversations/${id}`)
  expect(view.body.title).toBe('with <secret:TOKEN>')
  expect(JSON.stringify(items) + view.text).not.toContain(VALUE)
})

test('they survive a restart, encrypted', async () => {
  await using it = await setUp()
  await it.put({ TOKEN: VALUE })
  const { bench } = it.http
  const sealed = await readFile(join(bench.sessionOf(it.id), 'secrets.enc'), 'latin1')
  expect(sealed).not.toMatch(/TOKEN|nobody/)
  await bench.restart()
  expect((await bench.manager.open(it.id)).secrets.names()).toEqual(['TOKEN'])
  await bench.configure(it.id, { title: `still ${VALUE}` })
  expect((await bench.view(it.id)).title).toBe('still <secret:TOKEN>')
  await bench.configure(it.id, { llm_config: { api_key: 'another-key-of-the-model' } })
  expect((await bench.manager.open(it.id)).secrets.names(), 'new credentials of the model leave them alone').toEqual([
    'TOKEN',
  ])
})

test('those that no key decrypts are neither listed as none nor deleted, until others are stored', async () => {
  await using it = await setUp()
  await it.put({ TOKEN: VALUE })
  const { bench } = it.http
  await bench.restart({ secretKeys: ['quite-another-key-material'] })
  const { secrets } = await bench.manager.open(it.id)
  const locked = { code: 'storage_failed', message: expect.stringContaining('encrypted with another key') }
  expect(() => secrets.names()).toThrow(expect.objectContaining(locked))
  await expect(secrets.remove('TOKEN')).rejects.toMatchObject(locked)
  expect(await bench.view(it.id)).toMatchObject({ id: it.id })
  expect(await secrets.put({ OTHER: VALUE })).toEqual(['OTHER'])
})

describe('is refused, and nothing of it repeated:', () => {
  /** What is refused changes nothing. */
  const shared = setUp()
  afterAll(async () => (await shared)[Symbol.asyncDispose]())
  const huge = 'x'.repeat(MAX_SECRET_BYTES + 1)
  const many = Object.fromEntries(Array.from({ length: MAX_SECRETS + 1 }, (_, at) => [`N${at}`, VALUE]))

  test.each<[string, unknown, RegExp]>([
    ['a name that no variable can have', { 'my-token': VALUE }, /entry 1: a name must be/],
    ['an empty name', { '': VALUE }, /entry 1: a name must be/],
    ['a value in the place of the name', { GOOD: VALUE, [`${VALUE}=`]: 'NAME_OF_IT' }, /entry 2: a name must be/],
    ['a name of 129 characters', { ['N'.repeat(129)]: VALUE }, /at most 128 characters/],
    ...['PATH', 'HOME', 'IFS', 'PS4', 'PROMPT_COMMAND', 'SHELLOPTS', 'UID', 'PPID', 'ENV'].map(
      (name): [string, unknown, RegExp] => [
        `the name ${name}`,
        { [name]: VALUE },
        new RegExp(`the name ${name} is reserved`),
      ],
    ),
    ...[
      'BASH_ENV',
      'LD_PRELOAD',
      'OPENHANDS_MASTER_KEY',
      'LLM_API_KEY',
      'GIT_CONFIG_COUNT',
      'AGENT_SERVER_SHELL',
      'HISTFILE',
    ].map((name): [string, unknown, RegExp] => [
      `the name ${name}`,
      { [name]: VALUE },
      /names that begin with \w+ are reserved/,
    ]),
    ['a value of 7 characters', { TOKEN: 'ab12345' }, /at least 8 characters/],
    ['a value that is mostly white space', { TOKEN: ' ab12345\n\n' }, /at least 8 characters/],
    ['a value with a NUL', { TOKEN: `${VALUE}\0` }, /NUL/],
    ['a value that is too long', { TOKEN: huge }, /at most 32768 bytes/],
    ['a value that is no text', { TOKEN: { [VALUE]: 1 } }, /expected string/],
    ['too many', many, /at most 64/],
    ['a list', [VALUE], /secrets/],
    ['nothing', undefined, /secrets/],
  ])('%s', async (_, secrets, message) => {
    const it = await shared
    const answer = await it.http.call('PUT', it.path, { secrets })
    expectProblem(answer, 400, 'invalid_request')
    expect(answer.body.message).toMatch(message)
    expect(answer.text).not.toMatch(/nobody|ab12345|xxxx|NAME_OF_IT/)
    expect(it.http.bench.logged.join('')).not.toMatch(/nobody|ab12345/)
    expect((await it.names()).items).toEqual([])
    if (secrets !== undefined) {
      const created = await it.http.call('POST', '/conversations', { llm_config: { model: 'm' }, secrets })
      expectProblem(created, 400, 'invalid_request')
      expect(created.text).not.toMatch(/nobody|ab12345/)
    }
  })

  test('more than a conversation may have, in several steps', async () => {
    await using it = await setUp()
    const { N0: _, ...most } = many as Record<string, string>
    expect((await it.put(most)).status).toBe(200)
    const answer = await it.put({ ONE_MORE: VALUE })
    expectProblem(answer, 400, 'invalid_request')
    expect(answer.body.message).toMatch(/at most 64 secrets/)
    expect((await it.put({ N1: 'with-another-value' })).status).toBe(200)
  })

  test('a workdir or a field of llm_config that holds one', async () => {
    await using it = await setUp()
    await it.put({ TOKEN: VALUE })
    for (const body of [
      { workdir: `x/${VALUE}` },
      { llm_config: { base_url: `http://127.0.0.1/?key=${VALUE}` } },
      { llm_config: { extra_body: { key: VALUE } } },
    ]) {
      const answer = await it.http.call('PUT', `/conversations/${it.id}/config`, body)
      expectProblem(answer, 400, 'invalid_request')
      expect(answer.body.message).toMatch(/contains the value of a secret/)
      expect(answer.text).not.toContain(VALUE)
    }
  })

  test('the name of a shell session that holds one, which commands and their events would show', async () => {
    await using it = await setUp()
    await it.put({ TOKEN: VALUE })
    const command = { command: 'true', session_id: VALUE }
    const answer = await it.http.call('POST', `/conversations/${it.id}/commands`, command)
    expectProblem(answer, 400, 'invalid_request')
    expect(answer.body.message).toMatch(/session_id contains the value of a secret/)
    expect((await it.http.call('GET', `/conversations/${it.id}/commands`)).body.items).toEqual([])
  })
})

test('a password in the URL of a model is refused: all clients would see it, and it would not be sent', async () => {
  await using it = await setUp()
  const llm_config = { base_url: 'http://me:hunter2-hunter2@127.0.0.1/v1' }
  for (const answer of [
    await it.http.call('PUT', `/conversations/${it.id}/config`, { llm_config }),
    await it.http.call('POST', '/conversations', { llm_config }),
  ]) {
    expectProblem(answer, 400, 'invalid_request')
    expect(answer.body.message).toMatch(/base_url: must not contain credentials; send them in api_key or extra_headers/)
    expect(answer.text).not.toContain('hunter2')
  }
})

test.each(['GET', 'PUT', 'DELETE'])(
  '%s of a conversation that does not exist is 404, of a deleted one 410',
  async (method) => {
    await using it = await setUp()
    const ask = (id: string) =>
      it.http.call(
        method,
        `/conversations/${id}/secrets${method === 'DELETE' ? '/TOKEN' : ''}`,
        method === 'PUT' ? { secrets: { TOKEN: VALUE } } : undefined,
      )
    expectProblem(await ask(uuid7()), 404, 'conversation_not_found')
    await it.http.call('DELETE', `/conversations/${it.id}`)
    expectProblem(await ask(it.id), 410, 'conversation_deleted')
  },
)

test('a replaced or deleted value stays redacted while processes started with it may still print it', async () => {
  let said = ''
  await using it = await setUp({
    tools: [tool('Say', () => ({ output: said }))],
    script: () => ({ calls: [call('Say')] }),
  })
  await it.put({ TOKEN: VALUE, GONE: 'value-that-is-gone' })
  await it.put({ TOKEN: 'newer-value' })
  await it.http.call('DELETE', `${it.path}/GONE`)
  said = `${VALUE} newer-value value-that-is-gone`
  const title = await it.http.call('PUT', `/conversations/${it.id}/config`, { title: said })
  expect(title.body.title).toBe('<secret:TOKEN> <secret:TOKEN> <secret:GONE>')
})

test('a number that is a secret is hidden like its digits', async () => {
  await using it = await setUp()
  await it.put({ ACCOUNT: '1234567890123' })
  const http = it.http
  const id = await http.create({
    secrets: { ACCOUNT: '1234567890123' },
    metadata: { account: 1234567890123, other: 12 },
  })
  expect((await http.call('GET', `/conversations/${id}`)).body.metadata).toEqual({
    account: '<secret:ACCOUNT>',
    other: 12,
  })
})

test('a full disk leaves the secrets as they were', async () => {
  let isFull = false
  const full = Object.assign(new Error('no room'), { code: 'ENOSPC' })
  await using it = await setUp({
    wrapStorage: (real) =>
      override(real, {
        conversation(id) {
          const own = real.conversation(id)
          return override(own, {
            writeSecrets: async (values) => {
              if (isFull) throw full
              await own.writeSecrets(values)
            },
          })
        },
      }),
  })
  await it.put({ TOKEN: VALUE })
  isFull = true
  expectProblem(await it.put({ OTHER: VALUE }), 507, 'storage_full')
  expectProblem(await it.http.call('DELETE', `${it.path}/TOKEN`), 507, 'storage_full')
  expect((await it.names()).items).toEqual(['TOKEN'])
  expect(await it.updates()).toHaveLength(1)
})
