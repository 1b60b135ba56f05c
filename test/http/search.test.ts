/** The search over all conversations: over HTTP, with agents that work for a scripted model. */
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { FoundEvent } from '../../src/contract/search.ts'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { until } from '../support/until.ts'

let stage: Stage
beforeAll(async () => {
  const replies = [
    {
      when: 'bananas',
      turns: [bash('echo Überraschung_total; echo done'), { text: 'The word 漢字 is in the yellow answer.' }],
    },
    { when: 'again', turns: [{ text: 'Fine.' }] },
  ]
  stage = await setStage({ replies }, {})
})
afterAll(() => stage[Symbol.asyncDispose]())

/** Resolves to the answer when all is indexed, for which one search may not wait long enough on a slow machine. */
async function search(q: string, query = '', headers?: Record<string, string>) {
  const path = `/search?q=${encodeURIComponent(q)}${query}`
  return await until('all to be indexed', async () => {
    const { status, body } = await stage.server.call('GET', path, undefined, headers)
    expect(status, JSON.stringify(body)).toBe(200)
    return body.is_complete ? (body as { items: FoundEvent[]; next_page_id: string | null }) : undefined
  })
}
const typesOf = async (q: string) => (await search(q)).items.map(({ type }) => type)
const idsOf = async (q: string, headers?: Record<string, string>) => [
  ...new Set((await search(q, '', headers)).items.map(({ conversation_id }) => conversation_id)),
]
const marked = ({ snippet, matches }: FoundEvent) => matches.map(({ start, end }) => snippet.slice(start, end))

test('finds messages, answers, inputs and outputs of tools by their words, with the places of these', async () => {
  const id = await stage.create({ title: 'fruit' })
  await stage.say(id, 'Count the bananas, please.')
  const [message] = (await search('BANANAS coun')).items
  expect(message).toMatchObject({ conversation_id: id, title: 'fruit', type: 'UserMessage' })
  expect(message?.snippet).toBe('Count the bananas, please.')
  expect(marked(message!)).toEqual(['Count', 'bananas'])
  const events = await stage.events(id)
  expect(events.find(({ seq }) => seq === message?.seq).id).toBe(message?.event_id)
  expect(await typesOf('uberraschung')).toEqual(['ToolResult', 'ToolUse'])
  expect(await typesOf('ÜBERRASCHUNG total done')).toEqual(['ToolResult', 'ToolUse'])
  expect(await typesOf('漢 yellow')).toEqual(['AssistantMessage'])
  expect(await typesOf('bananas yellow')).toEqual([])
})

test('a query with any characters is an answer', async () => {
  for (const q of [
    '"',
    "'",
    '*',
    'a" OR "b',
    'NEAR(',
    '-',
    'words:',
    '\0',
    '\u{1F600}',
    '(',
    ')',
    '^x',
    '{',
    'é\u0301'.repeat(200),
    '½ ⑴ İ',
  ])
    await search(q)
  expect((await stage.server.call('GET', '/search?q=%ED%A0%80%ff')).status).toBeLessThan(500)
  const { status } = await stage.server.call('GET', `/search?q=bananas&page_id=WyIxIiwieCJd`)
  expect(status).toBe(400)
})

test('pages have each event once, the newest first', async () => {
  const id = await stage.create()
  for (const n of [1, 2, 3, 4, 5])
    await stage.server.call('POST', `/conversations/${id}/messages`, { message: `paged ${n}` })
  const found: string[] = []
  for (let next: string | null = ''; next !== null;) {
    const page = await search('paged', `&limit=2${next && `&page_id=${next}`}`)
    found.push(...page.items.map(({ snippet }) => snippet))
    next = page.next_page_id
  }
  expect(found).toEqual(['paged 5', 'paged 4', 'paged 3', 'paged 2', 'paged 1'])
})

test('a key finds what it may read, and no page shows the rest', async () => {
  const mine = await stage.create({ user_id: 'user-17' })
  const theirs = await stage.create({ user_id: 'user-18' })
  for (const id of [mine, theirs, theirs, theirs])
    await stage.server.call('POST', `/conversations/${id}/messages`, { message: 'confidential' })
  const keyWith = async (fields: object) => {
    const { body } = await stage.server.call('POST', '/keys', { name: 'a client', ...fields })
    return { authorization: `Bearer ${body.key}` }
  }
  const key = await keyWith({ scopes: ['read'], user_id: 'user-17' })
  const { items, next_page_id } = await search('confidential', '&limit=1', key)
  expect(items.map(({ conversation_id }) => conversation_id)).toEqual([mine])
  expect(next_page_id).toBeNull()
  const writer = await keyWith({ scopes: ['write'] })
  expect((await stage.server.call('GET', '/search?q=x', undefined, writer)).status).toBe(403)
})

test('what was rewound, withdrawn or deleted is found no more', async () => {
  const id = await stage.create()
  const post = async (message: string) =>
    (await stage.server.call('POST', `/conversations/${id}/messages`, { message })).body
  await post('rewound one')
  const { last_seq } = (await stage.server.call('GET', `/conversations/${id}`)).body
  await post('rewound two')
  expect(await typesOf('rewound')).toHaveLength(2)
  await stage.server.call('POST', `/conversations/${id}/rewind`, { to_seq: last_seq, last_seq: last_seq + 1 })
  expect((await search('rewound')).items.map(({ snippet }) => snippet)).toEqual(['rewound one'])
  await post('withdrawn')
  const [event] = (await search('withdrawn')).items
  await stage.server.call('DELETE', `/conversations/${id}/messages/${event?.event_id}`)
  expect(await typesOf('withdrawn')).toEqual([])
  await stage.server.call('DELETE', `/conversations/${id}`)
  expect(await typesOf('rewound')).toEqual([])
})

test('the index is made again when it is damaged, missing or of another format', async () => {
  const path = join(stage.server.dataDir, 'search.db')
  const all = await idsOf('bananas')
  expect(all).toHaveLength(1)
  await stage.server.stop('SIGKILL')
  await writeFile(path, 'no database')
  await stage.server.restart()
  expect(await idsOf('bananas')).toEqual(all)
  const breaks = [() => rm(path), () => writeFile(path, 'no database'.repeat(1000)), () => writeFile(path, '')]
  for (const damage of breaks) {
    await damage()
    expect(await idsOf('bananas')).toEqual(all)
  }
  // Also if there is something new to index.
  const id = await stage.create()
  await rm(path)
  await stage.say(id, 'Count the kiwis again.')
  expect(await idsOf('kiwis')).toEqual([id])
})

test('it can be turned off', async () => {
  await stage.server.restart('SIGTERM', { OPENHANDS_SEARCH: 'false' })
  const { status, body } = await stage.server.call('GET', '/search?q=bananas')
  expect([status, body.error]).toEqual([404, 'search_off'])
})

test('a log or a list of callbacks that cannot be read hides no other conversation, also not from sums and callbacks', async () => {
  const [whole, broken] = [await stage.create(), await stage.create()]
  for (const id of [whole, broken]) await stage.say(id, 'Once again, with papayas.')
  await stage.server.restart()
  const { dataDir } = stage.server
  for (const path of ['search.db', 'usage.db', `sessions/${broken}/events.jsonl`])
    await rm(join(dataDir, path), { force: true })
  for (const file of ['events.jsonl', 'callbacks.json']) await mkdir(join(dataDir, 'sessions', broken, file))
  expect(await idsOf('papayas')).toEqual([whole])
  for (const path of ['/usage', '/callbacks']) expect((await stage.server.call('GET', path)).status).toBe(200)
  await stage.server.stop()
  await rm(join(dataDir, 'sessions', broken), { recursive: true })
})
