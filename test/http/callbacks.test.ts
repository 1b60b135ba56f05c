/** The routes of callbacks: what they accept, what they return, and what they never return. */
import { readFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { MAX_CALLBACKS, UpdateCallback } from '../../src/contract/callback.ts'
import { MASK } from '../../src/contract/values/llm-config.ts'
import { uuid7 } from '../../src/lib/uuid7.ts'
import { createRedactor } from '../../src/security/redaction/redactor.ts'
import { userText } from '../conversations/fixtures.ts'
import { startReceiver } from '../support/receiver.ts'
import { expectProblem, setHttp } from './fixtures.ts'

const TOKEN = 'a-token-that-nobody-sees'

async function setUp(options: Parameters<typeof setHttp>[0] = {}) {
  const http = await setHttp(options)
  const receiver = await startReceiver()
  const id = await http.create()
  const path = `/conversations/${id}/callbacks`
  const create = (fields: object = {}, headers: Record<string, string> = {}) =>
    http.call('POST', path, { url: receiver.url, ...fields }, headers)
  const made = async (fields: object = {}) => {
    const { status, body, text } = await create(fields)
    expect(status, text).toBe(201)
    return { ...body, path: `${path}/${body.id}` }
  }
  const say = (text: string) =>
    http.call('POST', `/conversations/${id}/messages`, { message: { role: 'user', content: text } })
  return {
    http,
    receiver,
    id,
    path,
    create,
    made,
    say,
    async [Symbol.asyncDispose]() {
      await http[Symbol.asyncDispose]()
      await receiver[Symbol.asyncDispose]()
    },
  }
}

test('a callback’s secret is returned when it is created, and never again', async () => {
  await using it = await setUp()
  const { status, body, headers } = await it.create({
    events: ['UserMessage', 'UserMessage'],
    headers: { 'X-Token': TOKEN },
  })
  expect(status).toBe(201)
  expect(body).toMatchObject({
    url: it.receiver.url,
    events: ['UserMessage'],
    headers: { 'x-token': MASK },
    enabled: true,
    cursor: 1,
    secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/),
  })
  const { secret, ...rest } = body
  const one = `${it.path}/${body.id}`
  expect(headers['location']).toBe(one)
  expect((await it.http.call('GET', one)).body).toEqual(rest)
  expect((await it.http.call('GET', it.path)).body).toEqual({ items: [rest], next_page_id: null })
  const updated = await it.http.call('PUT', one, { enabled: false })
  expect(updated.body).toEqual({ ...rest, enabled: false, updated_at: expect.any(String) })

  await it.say(`${secret} and ${secret.slice(6)} and ${TOKEN}`)
  const { bench } = it.http
  const files = await readdir(bench.sessionOf(it.id))
  // A snapshot that is being replaced is gone by then.
  const read = (file: string) => readFile(join(bench.sessionOf(it.id), file), 'latin1').catch(() => '')
  const stored = await Promise.all(files.map(read))
  for (const text of [...stored, ...bench.logged]) {
    expect(text).not.toContain(secret.slice(6))
    expect(text).not.toContain(TOKEN)
  }
})

test('events are delivered as logged, signed, with the headers, filtered by type', async () => {
  await using it = await setUp()
  const { secret } = await it.made({
    events: ['UserMessage', 'ConfigUpdate'],
    headers: { Authorization: `Bearer ${TOKEN}` },
  })
  it.receiver.secret = secret
  await it.http.call('POST', `/conversations/${it.id}/run`)
  await it.say('hello')
  await it.http.call('PUT', `/conversations/${it.id}/config`, { title: 'other' })
  await it.receiver.untilReceived((all) => all.length >= 2)
  const { items } = (await it.http.call('GET', `/conversations/${it.id}/events?types=UserMessage,ConfigUpdate`)).body
  expect(it.receiver.received.map(({ body }) => body)).toEqual(
    items.map((event: object) => ({ conversation_id: it.id, event })),
  )
  for (const [at, { id, headers }] of it.receiver.received.entries()) {
    expect(id).toBe(items[at].id)
    expect(headers).toMatchObject({ authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' })
    expect(JSON.stringify(headers)).not.toContain('the-master-key')
  }
})

test('after a rotation deliveries are signed with both secrets for the overlap, and then with the new one only', async () => {
  await using it = await setUp()
  const { secret: former, path } = await it.made({ events: ['UserMessage'] })
  const signaturesOf = (text: string) =>
    it.receiver.received.find(({ text: body }) => body.includes(text))!.headers['webhook-signature']!.split(' ').length
  const deliver = async (text: string, secret: string) => {
    it.receiver.secret = secret
    await it.say(text)
    await it.receiver.untilReceived((all) => all.some(({ text: body }) => body.includes(text)))
  }
  const { body: rotated } = await it.http.call('POST', `${path}/rotate-secret`)
  expect(rotated).toMatchObject({ secret: expect.stringMatching(/^whsec_/), previous_secret_until: expect.any(String) })
  expect(rotated.secret).not.toBe(former)
  await deliver('with the former', former)
  await deliver('with the new', rotated.secret)
  expect(signaturesOf('with the new')).toBe(2)
  await it.say(`${former.slice(6)} and ${rotated.secret.slice(6)}`)
  expect(JSON.stringify((await it.http.call('GET', `/conversations/${it.id}/events`)).body)).not.toMatch(
    new RegExp(`${former.slice(10, 30)}|${rotated.secret.slice(10, 30)}`.replaceAll(/[+/]/g, '.')),
  )

  const { body: last } = await it.http.call('POST', `${path}/rotate-secret`, { overlap_seconds: 0 })
  expect(last.previous_secret_until).toBeUndefined()
  await deliver('with the last', last.secret)
  expect(signaturesOf('with the last')).toBe(1)
  const { body: shown } = await it.http.call('GET', path.replace(/\/rotate-secret$/, ''))
  expect(shown.secret).toBeUndefined()
})

const RESERVED = [
  'webhook-id',
  'Webhook-Signature',
  'Host',
  'Content-Length',
  'content-type',
  'Transfer-Encoding',
  'Connection',
]

describe('is refused', () => {
  /** What is refused changes nothing. */
  const shared = setUp()
  afterAll(async () => (await shared)[Symbol.asyncDispose]())

  test.each<[string, object]>([
    ['no url', {}],
    ['a path', { url: '/hook' }],
    ['another scheme', { url: 'ftp://example.com/hook' }],
    ['credentials in the URL', { url: 'https://user:password@example.com/hook' }],
    ['a URL that is too long', { url: `https://example.com/${'x'.repeat(2048)}` }],
    ['a type that no event has', { url: 'https://example.com/', events: ['Nothing'] }],
    ['a type that is never stored', { url: 'https://example.com/', events: ['AssistantDelta'] }],
    ['no types at all', { url: 'https://example.com/', events: [] }],
    ['an unknown field', { url: 'https://example.com/', secret: 'whsec_mine' }],
    ['a header that is no name', { url: 'https://example.com/', headers: { 'no name': 'x' } }],
    ['a header value that ends the line', { url: 'https://example.com/', headers: { 'x-a': 'b\r\nhost: other' } }],
    ['two headers of one name', { url: 'https://example.com/', headers: { 'x-a': '1', 'X-A': '2' } }],
    [
      'too many headers',
      {
        url: 'https://example.com/',
        headers: Object.fromEntries(Array.from({ length: 21 }, (_, n) => [`x-${n}`, '1'])),
      },
    ],
    ['a value that is too long', { url: 'https://example.com/', headers: { 'x-a': 'x'.repeat(4097) } }],
    ...RESERVED.map((name): [string, object] => [
      `the header ${name}`,
      { url: 'https://example.com/', headers: { [name]: 'x' } },
    ]),
  ])('%s', async (_what, body) => {
    const { http, path } = await shared
    expectProblem(await http.call('POST', path, body), 400, 'invalid_request')
    expect((await http.call('GET', path)).body.items).toEqual([])
  })

  test.each(['http://127.0.0.2/', 'https://[::1]/', 'http://169.254.169.254/latest', 'http://0x7f.2/'])(
    'the address of %s, when it is made and when it is changed',
    async (url) => {
      await using it = await setUp()
      const { path } = await it.made()
      expectProblem(await it.create({ url }), 400, 'callback_address_refused')
      expectProblem(await it.http.call('PUT', path, { url }), 400, 'callback_address_refused')
      expect((await it.http.call('GET', path)).body.url).toBe(it.receiver.url)
    },
  )

  test('a URL that holds a secret of the conversation, and a header that holds a key of the server', async () => {
    const knowing = () => {
      const redactor = createRedactor()
      redactor.set('OPENHANDS_MASTER_KEY', 'the-master-key-of-these-tests')
      return redactor
    }
    await using it = await setUp({ deps: { createRedactor: knowing } })
    await it.http.call('PUT', `/conversations/${it.id}/secrets`, { secrets: { TOKEN } })
    expectProblem(await it.create({ url: `${it.receiver.url}?token=${TOKEN}` }), 400, 'invalid_request')
    const headers = { authorization: 'Bearer the-master-key-of-these-tests' }
    const refused = await it.create({ headers })
    expectProblem(refused, 400, 'invalid_request')
    expect(refused.text).not.toContain('the-master-key')
    expect((await it.create({ headers: { 'x-token': TOKEN } })).status).toBe(201)
  })

  test('one more than the limit', async () => {
    await using it = await setUp()
    for (let n = 0; n < MAX_CALLBACKS; n++) await it.made()
    expectProblem(await it.create(), 400, 'invalid_request')
  })
})

test('an unknown callback is 404 on each route, and one of another conversation too', async () => {
  await using it = await setUp()
  const other = await it.http.create()
  const { id } = await it.made()
  for (const path of [`${it.path}/${uuid7()}`, `/conversations/${other}/callbacks/${id}`]) {
    expectProblem(await it.http.call('GET', path), 404, 'callback_not_found')
    expectProblem(await it.http.call('PUT', path, { enabled: true }), 404, 'callback_not_found')
    expectProblem(await it.http.call('DELETE', path), 404, 'callback_not_found')
    expectProblem(await it.http.call('GET', `${path}/deliveries`), 404, 'callback_not_found')
    expectProblem(await it.http.call('POST', `${path}/test`), 404, 'callback_not_found')
    expectProblem(await it.http.call('POST', `${path}/redeliver`, { from_seq: 1 }), 404, 'callback_not_found')
  }
  expectProblem(await it.http.call('GET', `${it.path}/not-an-id`), 400, 'invalid_request')
})

test('PUT changes the named fields: masked headers are kept, missing ones removed, null selects all events', async () => {
  await using it = await setUp()
  const { path } = await it.made({ events: ['Result'], headers: { 'x-one': TOKEN, 'x-two': 'two' } })
  const put = (body: object) => it.http.call('PUT', path, body)
  expect((await put({})).body).toMatchObject({ events: ['Result'], headers: { 'x-one': MASK, 'x-two': MASK } })
  const { body } = await put({
    events: null,
    headers: { 'x-one': MASK, 'x-three': 'three' },
    url: `${it.receiver.url}/new`,
  })
  expect(body).toMatchObject({ headers: { 'x-one': MASK, 'x-three': MASK }, url: `${it.receiver.url}/new` })
  expect(body).not.toHaveProperty('events')
  await it.say('hello')
  await it.receiver.untilReceived((all) => all.length >= 1)
  const { headers } = it.receiver.received[0]!
  expect(headers).toMatchObject({ 'x-one': TOKEN, 'x-three': 'three' })
  expect(headers).not.toHaveProperty('x-two')
})

test('a disabled one gets nothing, and continues where it stopped; a deleted one gets nothing any more', async () => {
  await using it = await setUp()
  const { path } = await it.made()
  await it.http.call('PUT', path, { enabled: false })
  await it.say('one')
  await it.say('two')
  const watching = await it.made({ url: `${it.receiver.url}/watching` })
  await it.say('three')
  await it.receiver.untilReceived((all) => all.length >= 1)
  expect((await it.http.call('PUT', path, { enabled: true })).body).toMatchObject({ enabled: true, cursor: 1 })
  await it.receiver.untilReceived((all) => all.length >= 4)
  expect(it.receiver.received.map(({ body }) => body.event.seq)).toEqual([4, 2, 3, 4])
  expect((await it.http.call('DELETE', path)).status).toBe(204)
  await it.say('four')
  await it.receiver.untilReceived((all) => all.length >= 5)
  await expect.poll(async () => (await it.http.call('GET', watching.path)).body.cursor).toBe(5)
  expect(it.receiver.received).toHaveLength(5)
  expectProblem(await it.http.call('GET', path), 404, 'callback_not_found')
})

test('redeliver moves the cursor back, never ahead, and reports the end of the log', async () => {
  await using it = await setUp()
  const { path } = await it.made()
  await it.say('one')
  await it.say('two')
  await it.receiver.untilReceived((all) => all.length >= 2)
  const redeliver = (from_seq: unknown) => it.http.call('POST', `${path}/redeliver`, { from_seq })
  expect((await redeliver(1)).status).toBe(202)
  await it.receiver.untilReceived((all) => all.length >= 5)
  expect(it.receiver.received.map(({ body }) => body.event.seq)).toEqual([2, 3, 1, 2, 3])
  const [first, , , again] = it.receiver.received
  expect(again).toMatchObject({ id: first!.id, text: first!.text })
  expectProblem(await redeliver(4), 409, 'cursor_ahead')
  expectProblem(await redeliver(0), 400, 'invalid_request')
})

test('test sends a signed event that is in no log, also from a disabled one, and returns the outcome', async () => {
  await using it = await setUp()
  const { path, secret } = await it.made({ headers: { 'x-token': TOKEN } })
  it.receiver.secret = secret
  await it.http.call('PUT', path, { enabled: false })
  const sent = await it.http.call('POST', `${path}/test`)
  expect(sent.body).toEqual({
    event_id: expect.any(String),
    status: 'delivered',
    response_status: 204,
    duration_ms: expect.any(Number),
  })
  expect(it.receiver.received).toMatchObject([
    {
      id: sent.body.event_id,
      headers: { 'x-token': TOKEN },
      body: { conversation_id: it.id, event: { type: 'CallbackTest' } },
    },
  ])
  it.receiver.answer = () => 500
  expect((await it.http.call('POST', `${path}/test`)).body).toMatchObject({
    status: 'failed',
    response_status: 500,
    error: 'answered 500',
  })
  await it.receiver.down()
  const { body } = await it.http.call('POST', `${path}/test`)
  expect(body).toMatchObject({ status: 'failed', error: expect.stringContaining('connection') })
  expect(body).not.toHaveProperty('response_status')
  expect((await it.http.call('GET', `/conversations/${it.id}/events/count`)).body.count).toBe(1)
})

test('deliveries are listed newest first, page by page', async () => {
  await using it = await setUp()
  const { path } = await it.made()
  for (let n = 0; n < 5; n++) await it.say('x')
  await it.receiver.untilReceived((all) => all.length >= 5)
  await expect.poll(async () => (await it.http.call('GET', path)).body.cursor).toBe(6)
  const seqs: number[] = []
  for (let query = '?limit=2'; query;) {
    const { body } = await it.http.call('GET', `${path}/deliveries${query}`)
    expect(body.items.length).toBeLessThanOrEqual(2)
    for (const item of body.items)
      expect(item).toMatchObject({ type: 'UserMessage', status: 'delivered', attempts: 1, response_status: 204 })
    seqs.push(...body.items.map((item: { seq: number }) => item.seq))
    query = body.next_page_id === null ? '' : `?limit=2&page_id=${body.next_page_id}`
  }
  expect(seqs).toEqual([6, 5, 4, 3, 2])
  expect((await it.http.call('GET', `${path}/deliveries?status=failed`)).body.items).toEqual([])
  expectProblem(await it.http.call('GET', `${path}/deliveries?page_id=nonsense`), 400, 'invalid_cursor')
  expectProblem(await it.http.call('GET', `${path}/deliveries?limit=0`), 400, 'invalid_request')
})

test('all callbacks are listed with what failed, also of closed conversations, for keys that may see them', async () => {
  await using it = await setUp()
  const { http, receiver } = it
  receiver.answer = () => 500
  const made = await it.made({ headers: { 'X-Token': TOKEN } })
  await it.say('is refused')
  const other = await http.create({ user_id: 'ada', title: 'other' })
  const fine = await http.call('POST', `/conversations/${other}/callbacks`, { url: receiver.url })
  const list = async (query = '', key?: string) => {
    const headers = key === undefined ? {} : { authorization: `Bearer ${key}` }
    const { status, body, text } = await http.call('GET', `/callbacks?${query}`, undefined, headers)
    expect(status, text).toBe(200)
    return body
  }
  const failing = async () => (await list('failing=true')).items
  await expect.poll(failing).toMatchObject([
    {
      conversation_id: it.id,
      callback: { id: made.id, headers: { 'x-token': MASK }, failing_since: expect.any(String) },
      pending: { seq: 2, status: 'pending', response_status: 500, error: 'answered 500' },
      failed: [],
    },
  ])
  expect((await list('failing=false')).items).toMatchObject([
    { conversation_id: other, title: 'other', user_id: 'ada', callback: { id: fine.body.id }, failed: [] },
  ])
  const first = await list('limit=1')
  expect(first.items.map(({ callback }: typeof made) => callback.id)).toEqual([fine.body.id])
  const second = await list(`limit=1&page_id=${first.next_page_id}`)
  expect(second).toMatchObject({ items: [{ callback: { id: made.id } }], next_page_id: null })
  const { key } = (await http.call('POST', '/keys', { name: 'ada', scopes: ['read'], user_id: 'ada' })).body
  expect((await list('', key)).items.map((row: { conversation_id: string }) => row.conversation_id)).toEqual([other])
  expectProblem(await http.call('GET', '/callbacks?page_id=nonsense'), 400, 'invalid_cursor')

  const page = () => http.bench.manager.callbacks.page({ failing: true, limit: 10 })
  const before = (await page()).items
  await http.bench.restart()
  const opened = http.bench.manager.openCount
  const after = (await page()).items
  expect(after).toMatchObject([{ callback: { id: made.id, headers: { 'x-token': MASK } } }])
  expect(JSON.stringify([before, after])).not.toContain(TOKEN)
  expect(http.bench.manager.openCount).toBe(opened)
})

describe('with an Idempotency-Key', () => {
  const key = { 'idempotency-key': 'key-1' }

  test('the same request is one callback, secret and all, also after a restart; another body is refused', async () => {
    await using it = await setUp()
    const first = await it.create({}, key)
    expect((await it.create({}, key)).body).toEqual(first.body)
    await it.http.bench.restart({ kill: true })
    const { webhooks } = await it.http.bench.manager.open(it.id)
    expect(webhooks.list()).toHaveLength(1)
    const bodyHash = JSON.parse(await readFile(join(it.http.bench.sessionOf(it.id), 'callbacks.json'), 'utf8'))
      .callbacks[0].idempotency.bodyHash
    expect(await webhooks.create({ url: it.receiver.url }, { key: 'key-1', bodyHash })).toEqual(first.body)
    await expect(webhooks.create({ url: it.receiver.url }, { key: 'key-1', bodyHash: 'other' })).rejects.toMatchObject({
      code: 'idempotency_mismatch',
    })
  })

  test('one of five concurrent requests creates it, and a late request does not create a deleted one again', async () => {
    await using it = await setUp()
    const answers = await Promise.all(Array.from({ length: 5 }, () => it.create({}, key)))
    const made = answers.filter(({ status }) => status === 201)
    for (const answer of answers.filter(({ status }) => status !== 201))
      expectProblem(answer, 409, 'idempotency_in_flight')
    expect(new Set(made.map(({ body }) => body.id)).size).toBe(1)
    await it.http.call('DELETE', `${it.path}/${made[0]!.body.id}`)
    expectProblem(await it.create({}, key), 404, 'callback_not_found')
    await it.http.bench.restart({ kill: true })
    const { webhooks } = await it.http.bench.manager.open(it.id)
    expect(webhooks.list()).toEqual([])
  })
})

test('with another server key a callback is disabled and says why; with the old key its secret works again', async () => {
  await using it = await setUp()
  const { id } = await it.made({ headers: { 'x-token': TOKEN } })
  const { bench } = it.http
  await bench.restart({ secretKeys: ['another-key-of-the-server'] })
  const { webhooks } = await bench.manager.open(it.id)
  expect(webhooks.get(id)).toMatchObject({ enabled: false, disabled_reason: expect.stringContaining('another key') })
  await expect(webhooks.update(id, { enabled: true })).rejects.toMatchObject({ code: 'storage_failed' })
  await bench.restart({ secretKeys: ['another-key-of-the-server', 'key-material-of-the-tests'] })
  expect((await bench.manager.open(it.id)).webhooks.get(id)).toMatchObject({ headers: { 'x-token': MASK } })
})

test('a start with a wrong key disables no callback permanently: with the right key it delivers what it has missed', async () => {
  await using it = await setUp()
  const { id } = await it.made()
  const { bench } = it.http
  await bench.restart({ secretKeys: ['another-key-of-the-server'] })
  const opened = await bench.manager.open(it.id)
  await opened.post(userText('missed'))
  // Its file is written while the key is missing, and so is the mark that something is due.
  await opened.webhooks.create({ url: it.receiver.url, events: ['Result'] })
  await opened.deliveries.settle()
  await bench.restart()
  await it.receiver.untilReceived((all) => all.length >= 1)
  const callback = (await bench.manager.open(it.id)).webhooks.get(id)
  expect(callback).toMatchObject({ enabled: true })
  expect(callback).not.toHaveProperty('disabled_reason')
})

test('a callback that an earlier version had disabled for a wrong key is enabled again', async () => {
  await using it = await setUp()
  const { id } = await it.made()
  const { bench } = it.http
  const file = join(bench.sessionOf(it.id), 'callbacks.json')
  const disabled_reason = 'its secret and headers were encrypted with another key; start the server with that key, or …'
  const spoil = async () => {
    const stored = JSON.parse(await readFile(file, 'utf8'))
    Object.assign(stored.callbacks[0], { enabled: false, disabled_reason })
    await writeFile(file, JSON.stringify(stored))
  }
  await bench.restart({ between: spoil })
  expect((await bench.manager.open(it.id)).webhooks.get(id)).toMatchObject({ enabled: true })
})

test('callbacks that cannot be read are set aside, and the conversation works', async () => {
  await using it = await setUp()
  await it.made()
  const { bench } = it.http
  const file = join(bench.sessionOf(it.id), 'callbacks.json')
  await bench.restart({ between: () => writeFile(file, '{"format":1,') })
  const conversation = await bench.manager.open(it.id)
  const { webhooks } = conversation
  expect(webhooks.list()).toEqual([])
  expect(conversation.view().id).toBe(it.id)
  expect(await readFile(`${file}.damaged`, 'utf8')).toBe('{"format":1,')
})

describe('a callback that is changed to another origin', () => {
  test('gets a new secret and none of the stored headers, and the answer says so', async () => {
    await using it = await setUp()
    await using other = await startReceiver()
    const { secret, path } = await it.made({ headers: { 'X-Token': TOKEN } })
    const { status, body } = await it.http.call('PUT', path, { url: other.url })
    expect(status).toBe(200)
    expect(body).toMatchObject({ url: other.url, secret: expect.stringMatching(/^whsec_/), dropped: ['headers'] })
    expect(body.secret).not.toBe(secret)
    expect(body).not.toHaveProperty('headers')
    expect((await it.http.call('GET', path)).body).not.toHaveProperty('secret')
    other.secret = body.secret
    await it.say('hello')
    await other.untilReceived((all) => all.length >= 1)
    expect((await it.http.call('POST', `${path}/test`)).body).toMatchObject({ status: 'delivered' })
    expect(JSON.stringify(other.received)).not.toContain(TOKEN)
    expect(it.receiver.received).toEqual([])
  })

  test('uses the headers sent with the change, except masked ones', async () => {
    await using it = await setUp()
    await using other = await startReceiver()
    const { path, headers } = await it.made({ headers: { 'X-Token': TOKEN, 'X-Other': TOKEN } })
    const { body } = await it.http.call('PUT', path, { url: other.url, headers: { ...headers, 'x-other': 'new-1' } })
    expect(body).toMatchObject({ headers: { 'x-other': MASK }, dropped: ['headers'] })
    await it.say('hello')
    await other.untilReceived((all) => all.length >= 1)
    expect(other.received[0]!.headers).toMatchObject({ 'x-other': 'new-1' })
    expect(JSON.stringify(other.received)).not.toContain(TOKEN)
    const back = await it.http.call('PUT', path, { url: it.receiver.url, headers: { 'X-Other': 'new-2' } })
    expect(back.body, 'nothing was lost').not.toHaveProperty('dropped')
  })

  test('is not one that is changed to another path of the same', async () => {
    await using it = await setUp()
    const { secret, path } = await it.made({ headers: { 'X-Token': TOKEN } })
    const { body } = await it.http.call('PUT', path, { url: `${it.receiver.url}/deeper?x=1` })
    expect(body).not.toHaveProperty('secret')
    expect(body).not.toHaveProperty('dropped')
    it.receiver.secret = secret
    await it.say('hello')
    await it.receiver.untilReceived((all) => all.length >= 1)
    expect(it.receiver.received[0]!.headers).toMatchObject({ 'x-token': TOKEN })
  })

  test('becomes usable again if its former credentials cannot be decrypted', async () => {
    await using it = await setUp()
    await using other = await startReceiver()
    const { id } = await it.made()
    await it.http.bench.restart({ secretKeys: ['another-key-of-the-server'] })
    const { webhooks } = await it.http.bench.manager.open(it.id)
    const updated = await webhooks.update(id, UpdateCallback.parse({ url: other.url, enabled: true }))
    expect(updated).toMatchObject({ enabled: true, secret: expect.stringMatching(/^whsec_/) })
  })
})
