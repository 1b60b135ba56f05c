import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, describe, expect, test } from 'vitest'
import { uuid7 } from '../../src/lib/uuid7.ts'
import { INFO, KEY, MAX_BODY_BYTES, expectProblem, setHttp } from './fixtures.ts'

/** What somebody put into the wrong place; no answer may repeat it. */
const SECRET = 'hunter2-in-the-wrong-place'
const REQUEST = '/conversations/{id}/requests/018f0000-0000-7000-8000-00000000000b'

const shared = await setHttp()
afterAll(() => shared[Symbol.asyncDispose]())

describe('a route', () => {
  test.each(['/nothing', '/conversations/x/y/z', '/conversation', '//', '/Conversations'])(
    'that does not exist is 404: %s',
    async (url) => {
      expectProblem(await shared.call('GET', url), 404, 'not_found')
    },
  )

  test.each([
    ['/api/conversations', /Leave out \/api:/],
    ['/v1/info', /Leave out \/v1:/],
    [`/api/v1/conversations/${uuid7()}/events?limit=1`, /Leave out \/api\/v1:/],
    ['/api/nothing', /openapi\.json/],
  ])('with the prefix of other APIs is 404, and says that there is none: %s', async (url, message) => {
    const answer = await shared.call('GET', url)
    expectProblem(answer, 404, 'not_found')
    expect(answer.body.message).toMatch(message)
  })

  test.each([
    ['PATCH', '/conversations', 'GET, HEAD, POST'],
    ['PUT', `/conversations/${uuid7()}`, 'DELETE, GET, HEAD'],
    ['GET', `/conversations/${uuid7()}/run`, 'POST'],
    ['DELETE', '/info', 'GET, HEAD'],
    ['POST', '/alive?x=1', 'GET, HEAD'],
    ['POST', `/conversations/${uuid7()}/events/stream/`, 'GET'],
  ])('with another method is 405: %s %s', async (method, url, allow) => {
    const answer = await shared.call(method, url)
    expectProblem(answer, 405, 'method_not_allowed')
    expect(answer.headers['allow']).toContain(allow.split(', ')[0])
    expect(answer.body.details.allow).toEqual(expect.arrayContaining(allow.split(', ')))
  })

  test('is the same with a slash at its end', async () => {
    const id = await shared.create()
    for (const url of ['/info/', '/alive/', '/conversations/', `/conversations/${id}/`, `/conversations/${id}/events/`])
      expect((await shared.call('GET', url)).status, url).toBe(200)
  })

  test('answers HEAD as GET, without a body', async () => {
    const id = await shared.create()
    for (const url of ['/alive', '/info', '/conversations', `/conversations/${id}`, `/conversations/${id}/events`]) {
      expect(await shared.call('HEAD', url), url).toMatchObject({ status: 200, text: '' })
    }
    expect(await shared.call('HEAD', `/conversations/${uuid7()}`)).toMatchObject({ status: 404, text: '' })
  })

  test('of a stream does not stream for HEAD', async () => {
    const id = await shared.create()
    const answer = await shared.call('HEAD', `/conversations/${id}/events/stream`, undefined, {
      accept: 'text/event-stream',
    })
    expect(answer).toMatchObject({ status: 400, text: '' })
  })
})

describe('a URL', () => {
  test.each(['/conversations/%zz', '/%', '/conversations/%c3%28/run'])(
    'that is not valid percent-encoding is 400: %s',
    async (url) => {
      const answer = await shared.call('GET', url)
      expect([400, 404], answer.text).toContain(answer.status)
      expect(answer.text).not.toContain('not valid JSON')
    },
  )

  test('with a very long part is 400', async () => {
    expectProblem(await shared.call('GET', `/conversations/${'x'.repeat(5000)}`), 400, 'invalid_request')
  })

  test.each(['x', '1', '..', '%2e%2e', `${uuid7()}x`, uuid7().slice(1), '%00', '018f0000-0000-0000-0000'])(
    'with an invalid id is refused: %s',
    async (id) => {
      for (const path of ['', '/events', '/events/count', '/events/stream']) {
        const answer = await shared.call('GET', `/conversations/${id}${path}`, undefined, { accept: '*/*' })
        // A URL with dots as a segment names what is above, and no route has that path.
        if (/^(\.|%2e)+$/.test(id)) expectProblem(answer, 404, 'not_found')
        else expectProblem(answer, 400, 'invalid_request')
      }
    },
  )

  test('takes an id in capitals for the same id', async () => {
    const id = await shared.create({ id: uuid7().toUpperCase() })
    expect(id).toBe(id.toLowerCase())
    expect(await shared.call('GET', `/conversations/${id.toUpperCase()}`)).toMatchObject({ status: 200, body: { id } })
    expectProblem(
      await shared.call('POST', '/conversations', { id: id.toUpperCase(), llm_config: { model: 'm' } }),
      409,
      'conversation_exists',
    )
  })

  test.each([
    ['/conversations?limit=0', 'querystring.limit'],
    ['/conversations?limit=1001', 'querystring.limit'],
    ['/conversations?limit=ten', 'querystring.limit'],
    ['/conversations?limit=1.5', 'querystring.limit'],
    ['/conversations?order=up', 'querystring.order'],
    ['/conversations?status=sleeping', 'querystring.status.0'],
    ['/conversations?created_after=yesterday', 'querystring.created_after'],
    ['/conversations?colour=red', 'querystring'],
    ['/conversations/count?limit=5', 'querystring'],
    [`/conversations/${uuid7()}/events?types=Telepathy`, 'querystring.types.0'],
    [`/conversations/${uuid7()}/events?types=Result&types=ToolUse,Telepathy`, 'querystring.types.2'],
    [`/conversations/${uuid7()}/events?after_seq=-1`, 'querystring.after_seq'],
    [`/conversations/${uuid7()}/events?source=moon`, 'querystring.source'],
    [`/conversations/${uuid7()}/events?since=1700000000`, 'querystring.since'],
    [`/conversations/${uuid7()}/events/stream?deltas=maybe`, 'querystring.deltas'],
  ])('with an invalid or unknown parameter is 400, and says which: %s', async (url, path) => {
    const answer = await shared.call('GET', url)
    expectProblem(answer, 400, 'invalid_request')
    expect(answer.body.details.issues).toMatchObject([{ path, message: expect.any(String) }])
  })

  test.each(['1', '1000'])('takes a limit of %s', async (limit) => {
    const id = await shared.create()
    expect((await shared.call('GET', `/conversations?limit=${limit}`)).status).toBe(200)
    expect((await shared.call('GET', `/conversations/${id}/events?limit=${limit}`)).status).toBe(200)
  })

  test('takes times with any offset, in both lists alike', async () => {
    await using http = await setHttp()
    const id = await http.create()
    const time = encodeURIComponent('2020-01-01T00:00:00+02:00')
    expect((await http.call('GET', `/conversations?created_after=${time}`)).body.items).toHaveLength(1)
    expect((await http.call('GET', `/conversations/${id}/events?since=${time}`)).body.items).toHaveLength(1)
  })

  test.each(['nonsense', 'W10', Buffer.from('["asc","x"]').toString('base64url')])(
    'with an invalid page_id is 400: %s',
    async (page_id) => {
      const id = await shared.create()
      expectProblem(
        await shared.call(
          'GET',
          `/conversations?page_id=${page_id === 'W10' || page_id === 'nonsense' ? page_id : ''}`,
        ),
        400,
        'invalid_cursor',
      )
      expectProblem(await shared.call('GET', `/conversations/${id}/events?page_id=${page_id}`), 400, 'invalid_cursor')
    },
  )
})

describe('a body', () => {
  test.each([
    '{',
    '{"a":1',
    "{'a': 1}",
    '[1,]',
    'hunter2-in-the-wrong-place',
    '\u0000',
    '{"__proto__": {}}',
    '{"constructor": {"prototype": {}}}',
  ])('that is not JSON, or not safe, is 400: %j', async (body) => {
    const answer = await shared.call('POST', '/conversations', body)
    expectProblem(answer, 400, 'invalid_request')
    expect(answer.text).not.toContain('hunter2')
  })

  test.each([
    ['{"title": "hunter2",}', /not valid JSON at line 1 column 21\. .*no comma after the last element/],
    ['{"title": hunter2}', /not valid JSON\. .*double quotes/],
    ['{"__proto__": {}}', /field __proto__/],
    ['{"title": 1}', /^body\.title: Invalid input: expected string, received number$/],
    ['', /^body: is required; expected object$/],
  ])('that is wrong is refused with the reason: %j', async (body, message) => {
    const answer = await shared.call('POST', '/conversations', body)
    expect(answer.body.message).toMatch(message)
    expect(answer.text).not.toContain('hunter2')
  })

  test.each(['null', '[]', '"text"', '7', 'true'])('that is JSON but not an object is 400: %s', async (body) => {
    expectProblem(await shared.call('POST', '/conversations', body), 400, 'invalid_request')
  })

  test('larger than allowed is 413, by its length or when received', async () => {
    await using http = await setHttp()
    expectProblem(
      await http.call('POST', '/conversations', { title: 'x'.repeat(MAX_BODY_BYTES) }),
      413,
      'body_too_large',
    )
    const url = await http.listen()
    const endless = new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(16_384)) })
    const response = await fetch(`${url}/conversations`, {
      method: 'POST',
      duplex: 'half',
      body: endless,
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    })
    expect([response.status, ((await response.json()) as { error: string }).error]).toEqual([413, 'body_too_large'])
  })

  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/xml',
    'nonsense',
  ])('as %s is 415', async (type) => {
    expectProblem(
      await shared.call('POST', '/conversations', '{}', { 'content-type': type }),
      415,
      'unsupported_media_type',
    )
  })

  test.each([
    'application/json',
    'application/json; charset=utf-8',
    'application/json;charset=UTF-8',
    'Application/JSON',
  ])('as %s is JSON', async (type) => {
    expect(
      (await shared.call('POST', '/conversations', { llm_config: { model: 'm' } }, { 'content-type': type })).status,
    ).toBe(201)
  })

  test('that is empty counts as absent, whatever its headers say', async () => {
    const id = await shared.create()
    for (const headers of [{}, { 'content-type': 'application/json' }] as Record<string, string>[]) {
      expect((await shared.call('POST', `/conversations/${id}/pause`, undefined, headers)).status).toBe(200)
      expect(
        (await shared.call('POST', `/conversations/${id}/pause`, '', { 'content-type': 'application/json' })).status,
      ).toBe(200)
      const other = await shared.create()
      expect((await shared.call('DELETE', `/conversations/${other}`, undefined, headers)).status).toBe(204)
    }
    expectProblem(await shared.call('POST', `/conversations/${id}/messages`, ''), 400, 'invalid_request')
    expectProblem(await shared.call('POST', `/conversations/${id}/messages`), 400, 'invalid_request')
  })

  test('that starts with a byte order mark is read', async () => {
    expect(
      (await shared.call('POST', '/conversations', `\ufeff${JSON.stringify({ llm_config: { model: 'm' } })}`)).status,
    ).toBe(201)
  })
})

test.each<[string, string, unknown]>([
  ['POST', '/conversations', { title: 7, user_id: SECRET.repeat(20) }],
  ['POST', '/conversations', { title: SECRET.repeat(20) }],
  ['POST', '/conversations', { id: SECRET }],
  ['POST', '/conversations', { tools: [SECRET] }],
  ['POST', '/conversations', { workdir: `../${SECRET}`, llm_config: { model: 'm' } }],
  ['POST', '/conversations', { workdir: `/proc/${SECRET}`, llm_config: { model: 'm' } }],
  ['POST', '/conversations', { workdir: `${SECRET}\0`, llm_config: { model: 'm' } }],
  ['POST', '/conversations', { llm_config: { model: 'm', base_url: SECRET } }],
  ['POST', '/conversations', { llm_config: { model: 'm', base_url: `ftp://${SECRET}` } }],
  ['POST', '/conversations', { llm_config: { model: 'm', temperature: SECRET } }],
  ['POST', '/conversations', { llm_config: { model: 'm', reasoning_effort: SECRET } }],
  ['POST', '/conversations', { llm_config: SECRET }],
  ['POST', '/conversations', { initial_message: { role: SECRET, content: SECRET } }],
  ['PUT', '/conversations/{id}/config', { max_iteration_per_run: SECRET }],
  ['PUT', '/conversations/{id}/config', { llm_config: { tool_choice: SECRET } }],
  ['POST', '/conversations/{id}/messages', { message: [SECRET] }],
  ['POST', '/conversations/{id}/messages', { message: { role: 'user', content: [{ type: SECRET }] } }],
  [
    'POST',
    '/conversations/{id}/messages',
    { message: { role: 'user', content: [{ type: 'image', media_type: 'image/png', data: SECRET }] } },
  ],
  ['POST', '/conversations/{id}/messages', { message: { role: 'user', content: 'hi' }, run: SECRET }],
  ['POST', '/conversations/{id}/run', { max_steps: SECRET }],
  ['POST', '/conversations/{id}/pause', { interrupt: SECRET }],
  ['POST', '/conversations/{id}/confirmation', { enabled: SECRET }],
  ['POST', REQUEST, { kind: SECRET }],
  ['POST', REQUEST, {}],
  ['POST', REQUEST, undefined],
  ['POST', '/conversations/{id}/reject', { reason: [SECRET] }],
  ['POST', `/conversations/{id}/requests/${SECRET}`, { kind: 'question', answers: { 0: 'a' } }],
  ['POST', REQUEST, { kind: 'permission', decisions: [] }],
  ['POST', REQUEST, { kind: 'permission', decisions: [{ tool_use_id: 'a', input_hash: SECRET, behavior: 'allow' }] }],
  [
    'POST',
    REQUEST,
    {
      kind: 'permission',
      decisions: [{ tool_use_id: 'a', input_hash: 'a'.repeat(64), behavior: 'deny', updated_input: {} }],
    },
  ],
])('a refusal says what is wrong, and repeats nothing of it: %s %s %j', async (method, url, body) => {
  const answer = await shared.call(method, url.replace('{id}', await shared.create()), body)
  expect(answer.status, answer.text).toBe(400)
  expect(answer.text).not.toContain(SECRET)
  expect(shared.bench.logged.join('')).not.toContain(SECRET)
})

test.each([
  ['no text', { role: 'user', content: '' }],
  ['no part', { role: 'user', content: [] }],
  ['a part without text', { role: 'user', content: [{ type: 'text', text: '' }] }],
  ['nothing but white space', { role: 'user', content: ' \n\t\u00a0' }],
  ['a part of nothing but white space', { role: 'user', content: [{ type: 'text', text: '\n' }] }],
  ['another role', { role: 'assistant', content: 'hi' }],
  ['an unknown field', { role: 'user', content: 'hi', name: 'x' }],
])('a message with %s is 400', async (_, message) => {
  const id = await shared.create()
  expectProblem(await shared.call('POST', `/conversations/${id}/messages`, { message }), 400, 'invalid_request')
})

test('a failure of the server returns an id to look for in its log, and no details', async () => {
  await using http = await setHttp({
    deps: {
      createRedactor: () => {
        throw new Error(`inner workings ${SECRET}`)
      },
    },
  })
  const answer = await http.call('POST', '/conversations', { llm_config: { model: 'm' } })
  expectProblem(answer, 500, 'internal')
  expect(answer.text).not.toMatch(/inner|hunter2|\.ts/)
  expect(http.bench.logged.join('')).toContain(answer.body.details.error_id)
})

test.each([
  ['no request at all\r\n\r\n', 400, 'invalid_request'],
  [`GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(100_000)}\r\n\r\n`, 431, 'headers_too_large'],
  [`GET /${'x'.repeat(100_000)} HTTP/1.1\r\nHost: x\r\n\r\n`, 431, 'headers_too_large'],
  ['GET /\u0000 HTTP/1.1\r\n\r\n', 400, 'invalid_request'],
])('an invalid request gets an error like every other: %.20j', async (bytes, status, error) => {
  await using http = await setHttp()
  const { port, hostname } = new URL(await http.listen())
  const socket = connect(Number(port), hostname)
  socket.write(bytes)
  const [head, body] = (await text(socket)).split('\r\n\r\n')
  expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
  expect(JSON.parse(body!)).toEqual({ error, message: expect.any(String) })
})

test('a message has 1,000 parts at most', async () => {
  const id = await shared.create()
  const parts = (count: number) => ({
    message: { role: 'user', content: Array.from({ length: count }, () => ({ type: 'text', text: 'x' })) },
  })
  expect((await shared.call('POST', `/conversations/${id}/messages`, parts(1000))).status).toBe(202)
  expectProblem(await shared.call('POST', `/conversations/${id}/messages`, parts(1001)), 400, 'invalid_request')
})

test('llm_config.extra_body has 256 KiB at most, in a create and in an update', async () => {
  const info = { ...INFO, tools: ['Bash'], network: { ...INFO.network, modes: ['open' as const] } }
  await using http = await setHttp({ http: { info: { ...info, limits: { ...INFO.limits, max_body_bytes: 1e6 } } } })
  const id = await http.create()
  const llm = (bytes: number) => ({ llm_config: { model: 'm', extra_body: { a: 'x'.repeat(bytes) } } })
  expect((await http.call('POST', '/conversations', llm(250_000))).status).toBe(201)
  const refusal = await http.call('POST', '/conversations', llm(270_000))
  expectProblem(refusal, 400, 'invalid_request')
  expect(refusal.text).toContain('llm_config.extra_body: has more than 256 KiB')
  expectProblem(await http.call('PUT', `/conversations/${id}/config`, llm(270_000)), 400, 'invalid_request')
})

describe('a body with a mistake', () => {
  const refusal = async (body: unknown) => {
    const answer = await shared.call('POST', '/conversations', body)
    expectProblem(answer, 400, 'invalid_request')
    return answer.body.message as string
  }

  test('in the name of a field says what was probably meant, and repeats nothing', async () => {
    expect(await refusal({ permision_mode: 'plan' })).toBe('body: has an unknown field; did you mean permission_mode?')
    expect(await refusal({ [SECRET]: 1 })).toContain('the fields are id, title')
    expect(await refusal({ [SECRET]: 1 })).not.toContain(SECRET)
    expect(await refusal({ llm_config: { model: 'm', temprature: 1 } })).toContain('did you mean temperature?')
  })

  test('in a value that may have several types says what each must be', async () => {
    const presets = 'expected one of "default"|"minimal"|"claude"|"openhands"'
    expect(await refusal({ tools: 'claud' })).toContain(
      `expected array, received string, or Invalid option: ${presets}`,
    )
    expect(await refusal({ tools: [1] })).toBe('body.tools.0: Invalid input: expected string, received number')
  })
})
