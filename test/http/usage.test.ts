/** GET /usage: what answers took and cost, over all conversations, in days of any time zone. */
import { readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, expect, test, vi } from 'vitest'
import { bucketEdges } from '../../src/conversations/usage/usage-buckets.ts'
import { GetUsage } from '../../src/contract/usage.ts'
import { say, setBench, until } from '../conversations/fixtures.ts'
import { expectProblem, setHttp } from './fixtures.ts'

const USAGE = { prompt_tokens: 100, completion_tokens: 10, prompt_tokens_details: { cached_tokens: 60 } }
const today = () => new Date().toISOString().slice(0, 10)
const FIRST_DAY = today()
const PRICES = { input_cost_per_token: 0.001, output_cost_per_token: 0.01 }

const http = await setHttp({ script: () => ({ text: 'Hello.', usage: USAGE }) })
afterAll(() => http[Symbol.asyncDispose]())

const usage = async (query = '', key?: string) => {
  const headers = key === undefined ? {} : { authorization: `Bearer ${key}` }
  const { status, body, text } = await http.call('GET', `/usage?${query}`, undefined, headers)
  expect(status, text).toBe(200)
  return body
}
const converse = async (fields: object = {}, model = 'dear') => {
  const llm_config = { model, base_url: http.bench.model.baseUrl, api_key: 'key-of-the-model', ...PRICES }
  const id = await http.create({ llm_config, ...fields })
  await say(await http.bench.manager.open(id))
  return id
}
const costOf = async (id: string): Promise<number> => (await http.call('GET', `/conversations/${id}`)).body.cost_usd
const groupsOf = ({ items }: { items: { group?: string | undefined; cost_usd: number }[] }) =>
  Object.fromEntries(items.map(({ group = 'rest', cost_usd }) => [group, Number(cost_usd.toFixed(6))]))

test('the sums are those of the logs of all conversations, with titles, forks and deleted ones', async () => {
  expect((await usage()).total).toMatchObject({ answers: 0, cost_usd: 0 })
  expect((await usage()).items).toEqual([])
  const first = await converse({ user_id: 'ada', labels: ['night', 'release'] })
  const second = await converse({ labels: ['night'] }, 'cheap')
  await say(await http.bench.manager.open(first))
  const { total, items } = await usage()
  const [one, two] = [await costOf(first), await costOf(second)]
  expect([one, two]).toEqual([expect.closeTo(0.4), expect.closeTo(0.2)])
  expect(total).toEqual({
    answers: 3,
    input_tokens: 300,
    output_tokens: 30,
    cached_tokens: 180,
    cache_write_tokens: 0,
    unpriced: 0,
    cost_usd: expect.closeTo(one + two),
  })
  expect(items).toEqual([{ start: expect.any(String), ...total, cost_usd: expect.closeTo(0.6) }])
  expect(groupsOf(await usage('by=model'))).toEqual({ dear: 0.4, cheap: 0.2 })
  expect(groupsOf(await usage('by=user_id'))).toEqual({ ada: 0.4, '': 0.2 })
  expect(groupsOf(await usage('by=label'))).toEqual({ night: 0.6, release: 0.4 })
  expect(groupsOf(await usage('by=conversation'))).toEqual({ [first]: 0.4, [second]: 0.2 })
  expect((await usage('by=conversation')).items[0].title).toBe('go')
  expect(groupsOf(await usage('by=conversation&limit=1'))).toEqual({ [first]: 0.4, rest: 0.2 })
  expect((await usage('by=model&limit=1')).items.at(-1)).toMatchObject({ rest: true })

  // A fork costs nothing until it answers, and labels count as they are now.
  const fork = (await http.call('POST', `/conversations/${first}/fork`, {})).body.id
  await say(await http.bench.manager.open(fork))
  await http.call('PUT', `/conversations/${second}/config`, { labels: ['day'] })
  expect(await costOf(fork)).toBeCloseTo(0.2)
  expect(groupsOf(await usage('by=label'))).toEqual({ night: 0.6, release: 0.6, day: 0.2 })

  // Its answers were not counted before: nothing asked for them.
  const gone = await converse({ user_id: 'eve' })
  expect((await http.call('DELETE', `/conversations/${gone}`)).status).toBe(204)
  expect(groupsOf(await usage('by=user_id'))).toEqual({ ada: 0.6, '': 0.2, eve: 0.2 })
  expect((await usage()).total.cost_usd).toBeCloseTo(1)
})

test('a limited key gets the usage of what it sees, and needs the scope read', async () => {
  const mine = await converse({ user_id: 'grace' })
  const other = await converse({ user_id: 'heidi' })
  const keyOf = async (fields: object) =>
    (await http.call('POST', '/keys', { name: 'limited', scopes: ['read'], ...fields })).body.key
  const [ofUser, ofOne] = [await keyOf({ user_id: 'grace' }), await keyOf({ conversations: [other] })]
  for (const [key, id] of [
    [ofUser, mine],
    [ofOne, other],
  ])
    // prettier-ignore
    for (const by of ['conversation', 'user_id', 'label', 'model']) {
      const { total, items } = await usage(`by=${by}`, key)
      expect(total.answers).toBe(1)
      expect(items).toHaveLength(1)
      if (by === 'conversation') expect(items[0].group).toBe(id)
    }
  const writer = await keyOf({ scopes: ['write'] })
  const refused = await http.call('GET', '/usage', undefined, { authorization: `Bearer ${writer}` })
  expectProblem(refused, 403, 'forbidden')
})

test('bad times, zones and limits are refused with what to do', async () => {
  for (const [query, words] of [
    ['tz=Mars/Olympus', /IANA/],
    ['from=yesterday', /2026-01-31/],
    ['from=2026-02-01&to=2026-01-01', /from must be before to/],
    ['from=2020-01-01&to=2026-01-01&bucket=hour', /more than 1000 hours.*bucket=day/],
    ['from=1970-01-01&to=9999-01-01&bucket=day', /more than 1000 days/],
    ['from=0099-01-01&to=0099-02-01', /1970 to 9999/],
    ['to=9999-12-31T23:59:59-23:00', /1970 to 9999/],
    ['bucket=week', /bucket/],
    ['by=key', /by/],
    ['limit=101', /limit/],
    ['since=1', /unknown field/],
  ] as const) {
    const answer = await http.call('GET', `/usage?${query}`)
    expectProblem(answer, 400, 'invalid_request')
    expect(answer.text).toMatch(words)
  }
})

test('days and hours are those of the zone, also when its clocks change', async () => {
  const edges = (query: object) =>
    bucketEdges(GetUsage.parse(query), Date.parse('2026-06-01T00:00:00Z')).map((ms) =>
      new Date(ms).toISOString().slice(5, 16),
    )
  const berlin = { tz: 'Europe/Berlin', bucket: 'day' }
  expect(edges({ ...berlin, from: '2026-03-28', to: '2026-03-31' })).toEqual([
    '03-27T23:00',
    '03-28T23:00',
    '03-29T22:00',
    '03-30T22:00',
  ])
  expect(edges({ ...berlin, from: '2026-10-25', to: '2026-10-26' })).toEqual(['10-24T22:00', '10-25T23:00'])
  expect(edges({ tz: 'Europe/Berlin', bucket: 'hour', from: '2026-03-29', to: '2026-03-30' })).toHaveLength(24)
  expect(
    edges({ tz: 'Asia/Kolkata', bucket: 'hour', from: '2026-01-01T00:00:00Z', to: '2026-01-01T02:00:00Z' }),
  ).toEqual(['01-01T00:00', '01-01T00:30', '01-01T01:30', '01-01T02:00'])
  // Midnight is skipped, comes twice, and a day is skipped.
  expect(edges({ tz: 'Africa/Cairo', bucket: 'day', from: '2026-04-24', to: '2026-04-25' })[0]).toBe('04-23T22:00')
  expect(edges({ tz: 'America/Havana', bucket: 'day', from: '2026-11-01', to: '2026-11-02' })).toEqual(['11-01T04:00', '11-02T05:00']) // prettier-ignore
  expect(edges({ tz: 'Pacific/Apia', bucket: 'day', from: '2011-12-29', to: '2012-01-01' })).toHaveLength(3)
  expect(edges({ tz: 'America/New_York' })).toEqual(['05-01T04:00', '06-01T00:00'])

  const { items } = await usage(`from=${today()}&bucket=day&tz=UTC`)
  // The answers are of the day on which this file began, unless midnight has passed.
  for (const { start } of items) expect([`${FIRST_DAY}T00:00:00.000Z`, `${today()}T00:00:00.000Z`]).toContain(start)
  expect(items.length > 0 || today() !== FIRST_DAY).toBe(true)
  expect((await usage('to=2020-01-01T00:00:00%2B02:00')).items).toEqual([])
})

test('without `to`, an answer counts in its own millisecond, and if its clock was ahead', async () => {
  await using bench = await setBench({ script: () => ({ text: 'Hello.', usage: USAGE }) })
  const conversation = await bench.converse()
  const { timestamp } = await say(conversation)
  for (const now of [Date.parse(timestamp) - 5000, Date.parse(timestamp)]) {
    vi.spyOn(Date, 'now').mockReturnValue(now)
    const report = (query: object) =>
      bench.manager.usage.report(GetUsage.parse(query), {}, new AbortController().signal)
    const [all, since] = [await report({}), await report({ from: timestamp, bucket: 'day' })]
    vi.restoreAllMocks()
    expect([all.total.answers, all.items[0]?.answers]).toEqual([1, 1])
    expect(since.items).toHaveLength(since.total.answers)
  }
})

test('what was counted before a restart is not read again, and a missing or damaged table is counted again', async () => {
  await using bench = await setBench({ script: () => ({ text: 'Hello.', usage: USAGE }) })
  const title = { generate_title: true, title_model: 'small' }
  const llm_config = { model: 'dear', base_url: bench.model.baseUrl, ...PRICES }
  const conversation = await bench.converse({ llm_config, ...title })
  await say(conversation)
  await until(conversation, 'ConfigUpdate')
  const report = () => bench.manager.usage.report(GetUsage.parse({ by: 'model' }), {}, new AbortController().signal)
  const counted = await report()
  expect(groupsOf(counted)).toMatchObject({ dear: 0.2 })
  expect(counted.total.answers).toBe(2)
  expect(counted.total.cost_usd).toBeCloseTo(conversation.view().cost_usd ?? 0)
  const path = join(bench.dataDir, 'usage.db')
  for (const between of [
    async () => {},
    async () => await writeFile(path, 'not a database'.repeat(500)),
    async () => await writeFile(path, ''),
  ]) {
    await bench.restart({ between })
    const again = await report()
    expect(again.total).toEqual(counted.total)
  }
  // Removed or replaced while the server runs, too.
  for (const damage of [() => rm(path), () => writeFile(path, '')]) {
    await damage()
    expect((await report()).total).toEqual(counted.total)
  }
  await say(await bench.manager.open(conversation.id))
  await rm(path)
  expect((await report()).total.answers).toBe(3)
  expect(await readdir(bench.dataDir)).toContain('usage.db')
})
