/** Requests that are wrong before they are requests, or end before they are whole: each gets one answer, in the common format of errors. */
import { once } from 'node:events'
import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ErrorBody } from '../../src/contract/problem.ts'
import { KEY, OLD_KEY, setHttp } from './fixtures.ts'
import { answersIn, drip, openSocket, sayTo } from './raw.ts'

const BEARER = `Authorization: Bearer ${KEY}`

describe('the head of a request', () => {
  let http: Awaited<ReturnType<typeof setHttp>>
  let url: string
  beforeAll(async () => {
    http = await setHttp()
    url = await http.listen()
  })
  afterAll(() => http[Symbol.asyncDispose]())

  test.each([
    ['no Host', `GET /info HTTP/1.1\r\n${BEARER}`, 400, 'invalid_request'],
    ['two Hosts', `GET /info HTTP/1.1\r\nHost: a\r\nHost: b\r\n${BEARER}`, 400, 'invalid_request'],
    ['the same Host twice', `GET /info HTTP/1.1\r\nHost: a\r\nhost: a\r\n${BEARER}`, 400, 'invalid_request'],
    ['a Host that is a list', `GET /info HTTP/1.1\r\nHost: a, b\r\n${BEARER}`, 400, 'invalid_request'],
    ['a Host with a path', `GET /info HTTP/1.1\r\nHost: a/b\r\n${BEARER}`, 400, 'invalid_request'],
    ['two keys', `GET /info HTTP/1.1\r\nHost: a\r\n${BEARER}\r\nAuthorization: Bearer x`, 400, 'invalid_request'],
    [
      'two keys of which both are right',
      `GET /info HTTP/1.1\r\nHost: a\r\n${BEARER}\r\nAuthorization: Bearer ${OLD_KEY}`,
      400,
      'invalid_request',
    ],
    [
      'two lengths',
      `POST /conversations HTTP/1.1\r\nHost: a\r\n${BEARER}\r\nContent-Length: 1\r\nContent-Length: 2`,
      400,
      'invalid_request',
    ],
    [
      'a length and chunks',
      `POST /conversations HTTP/1.1\r\nHost: a\r\n${BEARER}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked`,
      400,
      'invalid_request',
    ],
    [
      'an encoding that is not chunked',
      `POST /conversations HTTP/1.1\r\nHost: a\r\n${BEARER}\r\nTransfer-Encoding: x`,
      400,
      'invalid_request',
    ],
    [
      'an encoding beside chunked',
      `POST /conversations HTTP/1.1\r\nHost: a\r\n${BEARER}\r\nTransfer-Encoding: x, chunked`,
      400,
      'invalid_request',
    ],
    [
      'a compressed body',
      `POST /conversations HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${BEARER}\r\nContent-Encoding: gzip\r\nContent-Length: 2`,
      415,
      'unsupported_media_type',
    ],
    ['a name with a space', `GET /info HTTP/1.1\r\nHost: a\r\nX Y: z`, 400, 'invalid_request'],
    ['a folded line', `GET /info HTTP/1.1\r\nHost: a\r\nX: y\r\n z`, 400, 'invalid_request'],
    ['another protocol', `GET /info HTTP/3.7\r\nHost: a`, 400, 'invalid_request'],
    ['no first line', 'hello', 400, 'invalid_request'],
    ['too much', `GET /info HTTP/1.1\r\nHost: a\r\nX: ${'y'.repeat(20_000)}`, 431, 'headers_too_large'],
    [
      'another expectation',
      `GET /info HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${BEARER}\r\nExpect: a-miracle`,
      417,
      'expectation_failed',
    ],
    ['an expectation, and no key', 'GET /info HTTP/1.1\r\nHost: a\r\nExpect: a-miracle', 401, 'unauthorized'],
  ])('with %s gets an error in the common format, and the connection ends', async (_, head, status, error) => {
    const answers = answersIn(await sayTo(url, `${head}\r\n\r\n`))
    expect(answers.map((answer) => answer.status)).toEqual([status])
    expect(answers[0]!.head).toMatch(/^content-type: application\/json/im)
    expect(answers[0]!.head).toMatch(/^connection: close/im)
    expect(ErrorBody.strict().parse(JSON.parse(answers[0]!.body))).toMatchObject({ error })
    expect(http.bench.logged.join('')).not.toContain(KEY)
  })

  test.each(['localhost', 'localhost:8000', '127.0.0.1:1', '[::1]:8000', 'a.b-c.example', ''])(
    'may say Host: %s',
    async (host) => {
      const said = await sayTo(url, `GET /alive HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
      expect(said).toMatch(/^HTTP\/1\.1 200 /)
    },
  )

  test('of HTTP/1.0 needs no Host', async () => {
    expect(await sayTo(url, 'GET /alive HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 /)
  })
})

describe('the first line of a request', () => {
  let http: Awaited<ReturnType<typeof setHttp>>
  let url: string
  beforeAll(async () => {
    http = await setHttp()
    url = await http.listen()
  })
  afterAll(() => http[Symbol.asyncDispose]())

  test.each([
    ['\r\nGET /info HTTP/1.1', 'a'],
    ['GET http://a/info HTTP/1.1', 'a'],
    ['GET HTTP://A/info?x HTTP/1.1', 'a'],
    ['GET http://a:80/info HTTP/1.1', 'a'],
    ['GET http://a/info HTTP/1.1', 'a:80'],
    ['GET https://a:443/info HTTP/1.1', 'a'],
    ['GET http://[::1]:80/info HTTP/1.1', '[::1]'],
    ['GET http://a:8000/info HTTP/1.1', 'a:8000'],
  ])('may begin with %j for the host %s', async (line, host) => {
    const said = await sayTo(url, `${line}\r\nHost: ${host}\r\nConnection: close\r\n${BEARER}\r\n\r\n`)
    expect(said).toMatch(/^HTTP\/1\.1 200 /)
  })

  test.each([
    'GET  /info HTTP/1.1',
    'GET /info  HTTP/1.1',
    'GET\t/info HTTP/1.1',
    'GET /info\tHTTP/1.1',
    'GET /info HTTP/1.1 ',
    ' GET /info HTTP/1.1',
    '\nGET /info HTTP/1.1',
    '\r\n\r\nGET /info HTTP/1.1',
    'GET /info',
    'GET /info HTTP/0.9',
    'GET /info HTTP/2.0',
    'GET /info HTTP/1.10',
    'GET /info RTSP/1.0',
    'DESCRIBE /info RTSP/1.0',
    'DESCRIBE /info HTTP/1.1',
    'SOURCE /info ICE/1.0',
    'get /info HTTP/1.1',
    'CONNECT a:80 HTTP/1.1',
    'GET /info#x HTTP/1.1',
    'GET http://b/info HTTP/1.1',
    'GET http://a:443/info HTTP/1.1',
    'GET https://a:80/info HTTP/1.1',
    'GET http://a:8000/info HTTP/1.1',
    'GET http://x@a/info HTTP/1.1',
    'GET http:/info HTTP/1.1',
    'GET ftp://a/info HTTP/1.1',
    'GET info HTTP/1.1',
  ])('may not begin with %j', async (line) => {
    const [answer, ...more] = answersIn(await sayTo(url, `${line}\r\nHost: a\r\n${BEARER}\r\n\r\n`))
    expect(more).toEqual([])
    expect(answer).toMatchObject({ status: 400, head: expect.stringMatching(/^connection: close/im) })
    expect(JSON.parse(answer!.body)).toMatchObject({ error: 'invalid_request' })
  })

  const lines = (line: string, ...more: string[]) => [line, 'Host: a', BEARER, ...more, '', ''].join('\r\n')
  const info = lines('GET /info HTTP/1.1')
  const sent = (headers: string, body: string) =>
    `${lines('POST /nothing HTTP/1.1', 'Content-Type: application/json', headers)}${body}`
  const lenient = ['GET  /info HTTP/1.1', 'GET /info  HTTP/1.1', '\r\n\r\nGET /info HTTP/1.1', '\nGET /info HTTP/1.1']
  const quoted = `"\r\n\r\n${info}"`

  test.each([
    ['one without a body', info, 200],
    ['a body with the same text', sent(`Content-Length: ${quoted.length}`, quoted), 404],
    [
      'chunks with the same text',
      sent('Transfer-Encoding: chunked', `${quoted.length.toString(16)};x=y\r\n${quoted}\r\n0\r\nX: y\r\n\r\n`),
      404,
    ],
  ])('after %s is found where it is, and not in other text', async (_, before, status) => {
    const follow = async (next: string) => answersIn(await sayTo(url, before + next)).map((answer) => answer.status)
    for (const line of lenient)
      // The second header would be the right line.
      expect(await follow(lines(line, 'X: GET /info HTTP/1.1')), JSON.stringify(line)).toEqual([status, 400])
    expect(await follow(`\r\n${lines('GET /info HTTP/1.1', 'Connection: close')}`)).toEqual([status, 200])
  })

  test('is accepted with as many headers as the parser accepts, in any number of pieces', async () => {
    // The parser counts neither spaces nor separators.
    const pads = Array.from({ length: 400 }, (_, at) => `X-${at}:${' '.repeat(100)}${'y'.repeat(25)}`)
    const bytes = lines('GET /info HTTP/1.1', ...pads, 'Connection: close')
    const socket = openSocket(url).setNoDelay()
    const said = text(socket)
    for (let at = 0; at < bytes.length; at += 9000) {
      await new Promise((resolve) => socket.write(bytes.slice(at, at + 9000), resolve))
      await new Promise(setImmediate)
    }
    expect(answersIn(await said).map((answer) => answer.status)).toEqual([200])
  })

  test('is checked on each request of a connection, wherever the bytes are cut', async () => {
    const post = `POST /nothing HTTP/1.1\r\nHost: a\r\n${BEARER}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}`
    const get = `GET /info HTTP/1.1\r\nHost: a\r\n${BEARER}\r\n\r\n`
    const chunked = post.replace(/Content-Length.*/s, 'Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n')
    const bytes = `${post}\r\n${get}${post}${chunked}${get}${get.replace('GET ', 'GET  ')}`
    const cuts = Array.from({ length: bytes.length / 5 }, (_, at) => at * 5)
    const answers = await Promise.all(
      cuts.map(async (at) => {
        const socket = openSocket(url).setNoDelay()
        const said = text(socket)
        await once(socket, 'connect')
        await new Promise((resolve) => socket.write(bytes.slice(0, at), resolve))
        await new Promise(setImmediate)
        socket.write(bytes.slice(at))
        return answersIn(await said).map(({ status }) => status)
      }),
    )
    expect(new Set(answers.map(String))).toEqual(new Set(['404,200,404,404,200,400']))
  })
})

/** With the time limits of a real server: what ends the connection is the answer. */
describe('a response that is sent before the body has arrived', () => {
  const head = (start: string, ...headers: string[]) =>
    [`${start} HTTP/1.1`, 'Host: x', ...headers, '', ''].join('\r\n')
  const [json, long] = ['Content-Type: application/json', 'Content-Length: 1000000']

  test.each([
    ['no key', head('POST /conversations', json, long), 401],
    ['a wrong key', head('POST /conversations', 'Authorization: Bearer wrong', json, long), 401],
    ['a wrong key, for a file', head('PUT /conversations/x/files/y', 'Authorization: Bearer wrong', long), 401],
    ['no key and chunks', head('POST /conversations', json, 'Transfer-Encoding: chunked') + 'ffff\r\n', 401],
    ['no key and no route', head('POST /nothing', json, long), 401],
    ['a key in the URL', head('POST /conversations?token=x', json, long), 400],
    ['a URL that cannot be read', head('POST /%zz', json, long), 400],
    ['a public route', head('GET /alive', json, long), 200],
    ['no route', head('POST /nothing', BEARER, json, long), 404],
    ['another method', head('POST /info', BEARER, json, long), 405],
    ['too much', head('POST /conversations', BEARER, json, 'Content-Length: 100000000'), 413],
    ['another type', head('POST /conversations', BEARER, 'Content-Type: text/plain', long), 415],
    ['a WebSocket', head('GET /firehose', 'Connection: upgrade', 'Upgrade: websocket', long), 401],
    ['a wish to be asked for it, and no key', head('POST /conversations', json, long, 'Expect: 100-continue'), 401],
  ])('ends the connection: %s', async (_, beginning, status) => {
    await using http = await setHttp()
    const answers = answersIn(await drip(await http.listen(), beginning))
    expect(answers.map((answer) => answer.status)).toEqual([status])
  })

  test('reaches a client that keeps sending', async () => {
    await using http = await setHttp()
    const url = await http.listen()
    for (let n = 0; n < 10; n++) {
      const sending = request(`${url}/conversations/x/files/y`, {
        method: 'PUT',
        headers: { authorization: 'Bearer wrong', 'content-length': 64 * 1024 * 1024 },
      })
      sending.on('error', () => {})
      const answered = once(sending, 'response')
      sending.write(Buffer.alloc(16 * 1024 * 1024))
      const [response] = await answered
      expect(response.statusCode).toBe(401)
      expect(JSON.parse(await text(response))).toMatchObject({ error: 'unauthorized' })
      sending.destroy()
    }
  })

  test('is the last on its connection: later requests are not executed', async () => {
    await using http = await setHttp()
    const body = JSON.stringify({ llm_config: { model: 'm' } })
    const create = head('POST /conversations', BEARER, json, `Content-Length: ${body.length}`) + body
    const refused = head('POST /nothing', BEARER, json, 'Content-Length: 10')
    const socket = openSocket(await http.listen())
    socket.write(refused)
    const said = text(socket)
    await once(socket, 'end')
    socket.write(`0123456789${create}`)
    expect(answersIn(await said).map(({ status }) => status)).toEqual([404])
    await once(socket, 'close')
    expect((await http.call('GET', '/conversations/count')).body).toEqual({ count: 0 })
  })
})

test('behind another request, a body without a key is waited for no longer than alone', async () => {
  await using http = await setHttp()
  const first = `GET /info HTTP/1.1\r\nHost: x\r\n${BEARER}\r\n\r\n`
  const second =
    'POST /conversations HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n'
  const answers = answersIn(await drip(await http.listen(), first + second))
  expect(answers.map(({ status }) => status)).toEqual([200, 401])
})

describe('requests that are sent without waiting for the answer before', () => {
  const body = JSON.stringify({ llm_config: { model: 'm' } })
  const create = `POST /conversations HTTP/1.1\r\nHost: x\r\n${BEARER}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`

  test('run one after the other, in order', async () => {
    await using http = await setHttp()
    const requests = [create, `GET /conversations/count HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${BEARER}\r\n\r\n`]
    const answers = answersIn(
      await sayTo(await http.listen(), [...Array<string>(5).fill(create), ...requests].join('')),
    )
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201, 201, 201, 200])
    expect(JSON.parse(answers.at(-1)!.body)).toEqual({ count: 6 })
  })

  test('do not run while the answer before is not sent, and too many of them close the connection', async () => {
    await using http = await setHttp()
    const id = await http.create()
    const socket = openSocket(await http.listen())
    socket.write(`GET /conversations/${id}/events/stream?after_seq=0 HTTP/1.1\r\nHost: x\r\n${BEARER}\r\n\r\n`)
    await once(socket, 'data')
    socket.resume().write(create.repeat(101))
    await once(socket, 'close')
    expect((await http.call('GET', '/conversations/count')).body).toEqual({ count: 1 })
  })
})

test('a JSON body that is not UTF-8 is refused, and nothing is created', async () => {
  await using http = await setHttp()
  const socket = openSocket(await http.listen())
  const body = Buffer.from('{"llm_config":{"model":"m"},"title":"\u00e9"}', 'latin1')
  const head = `POST /conversations HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${BEARER}\r\nContent-Type: application/json`
  socket.write(`${head}\r\nContent-Length: ${body.length}\r\n\r\n`)
  socket.write(body)
  const [answer] = answersIn(await text(socket))
  expect(answer).toMatchObject({ status: 400, body: expect.stringContaining('not UTF-8') })
  expect((await http.call('GET', '/conversations/count')).body).toEqual({ count: 0 })
})

test('a client that expects 100 Continue receives it after its key was checked, and not before', async () => {
  await using http = await setHttp()
  const url = await http.listen()
  const body = JSON.stringify({ llm_config: { model: 'm' } })
  const head = `POST /conversations HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${BEARER}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`
  const socket = openSocket(url)
  const said = text(socket)
  socket.once('data', () => socket.write(body))
  socket.write(head)
  expect(answersIn(await said).map(({ status }) => status)).toEqual([100, 201])
})

test('an error after a stream has begun is not written into the stream', async () => {
  await using http = await setHttp()
  const id = await http.create()
  const socket = openSocket(await http.listen())
  const said = text(socket)
  socket.write(`GET /conversations/${id}/events/stream?after_seq=0 HTTP/1.1\r\nHost: x\r\n${BEARER}\r\n\r\n`)
  await once(socket, 'data')
  socket.write('no request at all\r\n\r\n')
  expect((await said).match(/HTTP\/1\.1 /g)).toEqual(['HTTP/1.1 '])
})
