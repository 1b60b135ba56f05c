/** Labels, metadata and variables of conversations: set at any time, filters of lists, and free of secrets. */
import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { ListConversations } from '../../src/contract/conversation.ts'
import { realShells, setBench } from '../conversations/fixtures.ts'
import { expectProblem, setHttp } from './fixtures.ts'

const http = await setHttp({ deps: { createShells: realShells() } })
afterAll(() => http[Symbol.asyncDispose]())

const configure = (id: string, update: object) => http.call('PUT', `/conversations/${id}/config`, update)

async function idsOf(...filters: (readonly [string, string])[]): Promise<string[]> {
  const query = new URLSearchParams(filters.map(([name, value]) => [name, value])).toString()
  const { status, body, text } = await http.call('GET', `/conversations?order=asc&${query}`)
  expect(status, text).toBe(200)
  const ids = body.items.map(({ id }: { id: string }) => id)
  expect((await http.call('GET', `/conversations/count?${query}`)).body.count).toBe(ids.length)
  return ids
}

test('lists are filtered by all labels and fields of the metadata that are named, also after a change', async () => {
  const metadata = { ticket: 17, team: 'a=b, c', urgent: true, deep: { ticket: 18 }, long: 'x'.repeat(257) }
  const first = await http.create({ labels: ['nightly', 'release, next'], metadata })
  const second = await http.create({ labels: ['nightly'], metadata: { ticket: '18' } })
  expect(await idsOf(['label', 'nightly'])).toEqual([first, second])
  expect(await idsOf(['label', 'nightly'], ['label', 'release, next'])).toEqual([first])
  expect(await idsOf(['label', 'release'])).toEqual([])
  const fields = ['ticket=17', 'team=a=b, c', 'urgent=true'].map((field) => ['metadata', field] as const)
  expect(await idsOf(...fields)).toEqual([first])
  expect(await idsOf(['metadata', 'ticket=18'])).toEqual([second])
  expect(await idsOf(['metadata', 'toString=x'])).toEqual([])

  expect((await configure(second, { labels: [], metadata: { ticket: 19 } })).body).toMatchObject({
    metadata: { ticket: 19 },
  })
  expect(await idsOf(['label', 'nightly'])).toEqual([first])
  expect(await idsOf(['metadata', 'ticket=18'])).toEqual([])
  expect(await idsOf(['metadata', 'ticket=19'])).toEqual([second])
  const fork = await http.call('POST', `/conversations/${first}/fork`, {})
  expect(fork.body).toMatchObject({ labels: ['nightly', 'release, next'], metadata })
  expect(await idsOf(['label', 'nightly'])).toEqual([first, fork.body.id])
})

test('a restart keeps the filters, also on a data directory of an earlier version', async () => {
  await using bench = await setBench()
  const id = await bench.create({ labels: ['nightly'], metadata: { ticket: 17 } })
  await bench.create()
  const found = async () => {
    const query = ListConversations.parse({ label: 'nightly', metadata: 'ticket=17' })
    return (await bench.manager.list(query)).items.map((view) => view.id)
  }
  await bench.restart()
  expect(await found()).toEqual([id])
  await bench.restart({
    between: async () => {
      const database = new DatabaseSync(join(bench.dataDir, 'summaries.db'))
      database.exec('PRAGMA user_version = 1')
      database.close()
    },
  })
  expect(await found()).toEqual([id])
})

test('labels and filters are bounded, and say what is wrong', async () => {
  const many = Array.from({ length: 21 }, (_, n) => `label ${n}`)
  for (const labels of [many, ['x'.repeat(65)], [''], ['twice', 'twice']])
    expectProblem(await http.call('POST', '/conversations', { labels }), 400, 'invalid_request')
  const url = `/conversations?${many.map((label) => `label=${label}`).join('&')}`
  for (const wrong of [url, '/conversations?label=', '/conversations?metadata=ticket', '/conversations?metadata==17']) {
    const answer = await http.call('GET', wrong)
    expectProblem(answer, 400, 'invalid_request')
    expect(answer.body.message).toMatch(/label|metadata/)
  }
})

test('a secret is redacted in labels and metadata, and refused in a variable', async () => {
  const secrets = { TOKEN: 'value-of-a-secret' }
  const id = await http.create({ secrets, labels: ['of value-of-a-secret'], metadata: { token: 'value-of-a-secret' } })
  const { text } = await configure(id, { labels: ['value-of-a-secret'], metadata: { 'value-of-a-secret': 1 } })
  const { text: events } = await http.call('GET', `/conversations/${id}/events`)
  for (const shown of [text, events]) expect(shown).not.toContain('value-of-a-secret')
  expect(await idsOf(['label', 'value-of-a-secret'])).toEqual([])
  const refused = await configure(id, { env: { COPY: 'value-of-a-secret' } })
  expectProblem(refused, 400, 'invalid_request')
  expect(refused.text).not.toContain('value-of-a-secret')
  expectProblem(await configure(id, { env: { LD_PRELOAD: 'x.so' } }), 400, 'invalid_request')
})

test('commands have the variables of the conversation from the next one on, and secrets take precedence', async () => {
  const id = await http.create({ env: { STAGE: 'test', TOKEN: 'plain' }, secrets: { TOKEN: 'value-of-a-secret' } })
  const say = async () => {
    const command = 'echo "${STAGE-none} ${REGION-none} ${#TOKEN}"'
    return (await http.call('POST', `/conversations/${id}/commands`, { command })).body.stdout
  }
  expect(await say()).toBe('test none 17\n')
  expect((await configure(id, { env: { REGION: 'north' } })).body.env).toEqual({ REGION: 'north' })
  expect(await say()).toBe('none north 17\n')
})

test('to change variables needs the scope approve, because they change what allowed commands run', async () => {
  const { body: key } = await http.call('POST', '/keys', { name: 'writer', scopes: ['write'] })
  const id = await http.create()
  const update = { env: { GIT_SSH_COMMAND: './anything' } }
  const asked = { authorization: `Bearer ${key.key}` }
  expectProblem(await http.call('PUT', `/conversations/${id}/config`, update, asked), 403, 'forbidden')
  const labels = await http.call('PUT', `/conversations/${id}/config`, { labels: ['new'] }, asked)
  expect(labels.body.labels).toEqual(['new'])
})
