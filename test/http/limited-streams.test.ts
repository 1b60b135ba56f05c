/** Streams, sockets, downloads and the firehose with limited keys and with tickets: what they are sent, and when they end. */
import { afterAll, describe, expect, test } from 'vitest'
import type { CreateKey } from '../../src/contract/key.ts'
import type { Frame } from '../support/socket.ts'
import { RefusedUpgrade, connectAs } from '../support/socket.ts'
import { subscribe } from '../support/stream.ts'
import { message } from '../events/fixtures.ts'
import { KEY, setHttp } from './fixtures.ts'

const http = await setHttp()
afterAll(() => http[Symbol.asyncDispose]())
const url = await http.listen()

const MINE = { user_id: 'user-17' }
const THEIRS = { user_id: 'user-18' }

async function keyFor(limits: Partial<CreateKey> = MINE) {
  const { body } = await http.call('POST', '/keys', { name: 'a test', scopes: ['read', 'write'], ...limits })
  return { id: body.id as string, key: body.key as string, header: { authorization: `Bearer ${body.key}` } }
}

async function ticketFor(body: object, header: Record<string, string> = {}): Promise<string> {
  const answer = await http.call('POST', '/stream-tickets', body, header)
  expect(answer.status, answer.text).toBe(201)
  return answer.body.ticket
}

const say = async (id: string, text = 'hello') => (await http.bench.manager.open(id)).log.append([message(text)])
const NO_KEY = { authorization: '' }
const MASTER = { authorization: `Bearer ${KEY}` }
const isUnauthorized = expect.objectContaining({ status: 401 })

describe('the firehose of a key limited to a user', () => {
  const streams = {
    'event stream': async (header: Record<string, string>, query = '') => {
      const stream = await subscribe(url, `/firehose${query}`, header)
      const events = () => stream.frames.map(({ event, data }) => [event, data.conversation_id as string] as const)
      return { ...stream, events, cursor: () => stream.frames.findLast(({ id }) => id)?.id }
    },
    socket: async (header: Record<string, string>, query = '') => {
      const socket = await connectAs(url, `/firehose${query}`, { headers: header })
      await socket.until(({ type }) => type === 'ready')
      const events = () =>
        socket.frames
          .filter(({ type }) => type !== 'ready')
          .map(({ type, conversation_id }) => [type as string, conversation_id as string] as const)
      const until = (fits: (frame: { event: string; data: Frame }) => boolean) =>
        socket.until((frame) => fits({ event: frame.type, data: frame }))
      return {
        ...socket,
        until,
        events,
        cursor: () => socket.frames.findLast(({ cursor }) => cursor)?.cursor as string,
      }
    },
  }

  test.each(Object.keys(streams) as (keyof typeof streams)[])(
    'has the events of that user, and of a delete too, but nothing of others: as %s',
    async (kind) => {
      const { header } = await keyFor({ user_id: `user-${kind}` })
      const stream = await streams[kind](header)
      const theirs = await http.create(THEIRS)
      const mine = await http.create({ user_id: `user-${kind}` })
      await say(theirs)
      await say(mine)
      await http.call('DELETE', `/conversations/${theirs}`)
      await http.call('DELETE', `/conversations/${mine}`)
      await stream.until(({ event }) => event === 'conversation_deleted')
      expect(new Set(stream.events().map(([, id]) => id))).toEqual(new Set([mine]))
      stream.close()
    },
  )

  test.each(Object.keys(streams) as (keyof typeof streams)[])(
    'continues from its cursor without a gap, past the events of others: as %s',
    async (kind) => {
      const { header } = await keyFor({ user_id: `user-again-${kind}` })
      const [mine, theirs] = [await http.create({ user_id: `user-again-${kind}` }), await http.create(THEIRS)]
      const stream = await streams[kind](header, '?cursor=0')
      await stream.until(({ data }) => data.conversation_id === mine)
      stream.close()
      await say(theirs)
      await say(mine, 'after the cursor')
      const cursor = stream.cursor()!
      const again = await streams[kind](header, `?cursor=${encodeURIComponent(cursor)}`)
      await again.until(({ data }) => JSON.stringify(data).includes('after the cursor'))
      expect(again.events().map(([, id]) => id)).toEqual(again.events().map(() => mine))
      again.close()
    },
  )
})

describe('a stream ticket', () => {
  test('opens the event stream of its conversation, once, and no other', async () => {
    const [mine, other] = [await http.create(MINE), await http.create(MINE)]
    const ticket = await ticketFor({ conversation_id: mine }, (await keyFor()).header)
    const path = `/conversations/${mine}/events/stream?after_seq=0&ticket=${ticket}`
    const stream = await subscribe(url, path, NO_KEY)
    await stream.until(({ event }) => event === 'SystemInit')
    stream.close()
    await expect(subscribe(url, path, NO_KEY)).rejects.toThrow('401')
    const second = await ticketFor({ conversation_id: mine })
    const elsewhere = `/conversations/${other}/events/stream?ticket=${second}`
    await expect(subscribe(url, elsewhere, NO_KEY)).rejects.toThrow('401')
  })

  test('opens a socket that reads, and sends nothing', async () => {
    const mine = await http.create(MINE)
    const ticket = await ticketFor({ conversation_id: mine })
    const socket = await connectAs(url, `/conversations/${mine}/ws?ticket=${ticket}`, {})
    await socket.until(({ type }) => type === 'ready')
    socket.say({ type: 'message', id: 'm', message: { role: 'user', content: 'hello' } })
    expect(await socket.until(({ type }) => type === 'problem')).toMatchObject({ id: 'm', error: 'forbidden' })
    await say(mine)
    await socket.until(({ type }) => type === 'UserMessage')
    socket.close()
    await expect(connectAs(url, `/conversations/${mine}/ws?ticket=${ticket}`, {})).rejects.toThrow(RefusedUpgrade)
  })

  test('opens the firehose, with what its key sees', async () => {
    const { header } = await keyFor({ user_id: 'user-ticket' })
    const ticket = await ticketFor({ firehose: true }, header)
    const stream = await subscribe(url, `/firehose?ticket=${ticket}`, NO_KEY)
    const theirs = await http.create(THEIRS)
    const mine = await http.create({ user_id: 'user-ticket' })
    await stream.until(({ data }) => data.conversation_id === mine)
    expect(JSON.stringify(stream.frames)).not.toContain(theirs)
    stream.close()
  })

  test('is refused everywhere except on a stream, and counts as a wrong key', async () => {
    const mine = await http.create(MINE)
    const ticket = await ticketFor({ conversation_id: mine })
    const answer = await http.call('GET', `/conversations/${mine}?ticket=${ticket}`, undefined, NO_KEY)
    expect(answer).toEqual(isUnauthorized)
    expect(await http.call('GET', '/conversations', undefined, { authorization: `Bearer ${ticket}` })).toEqual(
      isUnauthorized,
    )
  })

  test('is not given for a conversation that the key does not see', async () => {
    const { header } = await keyFor()
    const theirs = await http.create(THEIRS)
    const answer = await http.call('POST', '/stream-tickets', { conversation_id: theirs }, header)
    expect(answer.body.error).toBe('conversation_not_found')
  })

  test('is in no log', async () => {
    const mine = await http.create(MINE)
    const ticket = await ticketFor({ conversation_id: mine })
    const stream = await subscribe(url, `/conversations/${mine}/events/stream?ticket=${ticket}`, NO_KEY)
    stream.close()
    await stream.ended
    expect(http.bench.logged.join()).not.toContain(ticket)
  })
})

describe('a ticket of a file', () => {
  const download = (path: string, ticket: string, method = 'GET') =>
    http.call(method, `${path}?ticket=${ticket}`, undefined, NO_KEY)

  async function makeFiles() {
    const id = await http.create()
    for (const name of ['a.txt', 'b.txt']) await http.call('PUT', `/conversations/${id}/files/dir/${name}`, name)
    return { id, path: `/conversations/${id}/files/dir` }
  }

  test('downloads that file, once, as an attachment', async () => {
    const { id, path } = await makeFiles()
    const ticket = await ticketFor({ conversation_id: id, file: './dir/a.txt' })
    const answer = await download(`${path}%2Fa.txt`, ticket)
    expect([answer.status, answer.headers['content-disposition']]).toEqual([200, 'attachment; filename="a.txt"'])
    expect(answer.text).toContain('a.txt')
    expect(await download(`${path}/a.txt`, ticket)).toEqual(isUnauthorized)
  })

  test('is not used up by what a browser fetches ahead', async () => {
    const { id, path } = await makeFiles()
    const ticket = await ticketFor({ conversation_id: id, file: 'dir/a.txt' })
    const ahead = { ...NO_KEY, 'sec-purpose': 'prefetch;prerender' }
    expect((await http.call('GET', `${path}/a.txt?ticket=${ticket}`, undefined, ahead)).status).toBe(403)
    expect((await download(`${path}/a.txt`, ticket)).status).toBe(200)
  })

  test('opens nothing else: no other file, list, stream or change', async () => {
    const { id, path } = await makeFiles()
    for (const [method, other] of [
      ['GET', `${path}/b.txt`],
      ['GET', `${path}%252Fa.txt`],
      ['PUT', `${path}/a.txt`],
      ['DELETE', `${path}/a.txt`],
      ['GET', `/conversations/${id}/files`],
      ['GET', `/conversations/${id}/events/stream`],
      ['GET', '/firehose'],
    ] as const) {
      const ticket = await ticketFor({ conversation_id: id, file: 'dir/a.txt' })
      expect(await download(other, ticket, method), `${method} ${other}`).toEqual(isUnauthorized)
    }
    const ticket = await ticketFor({ conversation_id: id })
    expect(await download(`${path}/a.txt`, ticket)).toEqual(isUnauthorized)
  })

  test('downloads a directory as an archive', async () => {
    const { id, path } = await makeFiles()
    const ticket = await ticketFor({ conversation_id: id, file: 'dir' })
    const answer = await http.call('GET', `${path}?format=tar.gz&ticket=${ticket}`, undefined, NO_KEY)
    expect(answer.headers['content-type']).toBe('application/gzip')
  })

  test('needs a key that may read files of the conversation, and a path in its workdir', async () => {
    const { id } = await makeFiles()
    const body = { conversation_id: id, file: 'dir/a.txt' }
    const reader = await keyFor({ scopes: ['read'] })
    expect((await http.call('POST', '/stream-tickets', body, reader.header)).body.details).toEqual({
      missing_scopes: ['files'],
    })
    const other = await keyFor({ scopes: ['read', 'files'], user_id: 'somebody-else' })
    expect((await http.call('POST', '/stream-tickets', body, other.header)).body.error).toBe('conversation_not_found')
    const outside = await http.call('POST', '/stream-tickets', { ...body, file: '../a.txt' })
    expect(outside.body.error).toBe('unsafe_path')
    const whole = await http.call('POST', '/stream-tickets', { ...body, file: '.' })
    expect(whole.body).toMatchObject({ error: 'invalid_request', message: expect.stringContaining('the workdir') })
    const ofNothing = await http.call('POST', '/stream-tickets', { firehose: true, file: 'dir/a.txt' })
    expect(ofNothing.body.error).toBe('invalid_request')
  })

  test('is in the log with its key', async () => {
    const { id, path } = await makeFiles()
    const key = await keyFor({ scopes: ['read', 'files'], conversations: [id] })
    const ticket = await ticketFor({ conversation_id: id, file: 'dir/a.txt' }, key.header)
    expect((await download(`${path}/a.txt`, ticket)).status).toBe(200)
    const isDownload = (line: string) => line.includes('/conversations/:id/files/*') && line.includes('"GET"')
    await expect.poll(() => http.bench.logged.filter(isDownload).at(-1)).toContain(`"key_id":"${key.id}"`)
    expect(http.bench.logged.join()).not.toContain(ticket)
  })
})

describe('when a key is revoked', () => {
  test('its streams and sockets end immediately, those of other keys continue', async () => {
    const mine = await http.create(MINE)
    const { id, header } = await keyFor()
    const ticket = await ticketFor({ conversation_id: mine }, header)
    const path = `/conversations/${mine}/events/stream`
    const ended = [
      await subscribe(url, path, header),
      await subscribe(url, `${path}?ticket=${ticket}`, NO_KEY),
      await subscribe(url, '/firehose', header),
    ]
    const socket = await connectAs(url, `/conversations/${mine}/ws`, { headers: header })
    const browser = await connectAs(url, '/firehose', {})
    browser.say({ type: 'auth', token: header.authorization.replace('Bearer ', '') })
    for (const each of [socket, browser]) await each.until(({ type }) => type === 'ready')
    const other = await subscribe(url, path, MASTER)
    await http.call('DELETE', `/keys/${id}`)
    await Promise.all(ended.map((stream) => stream.ended))
    expect(await Promise.all([socket.closed, browser.closed])).toEqual([4401, 4401])
    expect(socket.frames.at(-1)).toMatchObject({ type: 'error', error: 'unauthorized' })
    await say(mine, 'still there')
    await other.until(({ data }) => JSON.stringify(data).includes('still there'))
    other.close()
  })
})

describe('a socket of a key that is revoked', () => {
  test('while its conversation is opened ends, too', async () => {
    for (let round = 0; round < 8; round++) {
      const mine = await http.create(MINE)
      const { id, header } = await keyFor()
      const connecting = connectAs(url, `/conversations/${mine}/ws`, { headers: header }).catch(() => undefined)
      await http.call('DELETE', `/keys/${id}`)
      const socket = await connecting
      if (socket) expect(await socket.closed).toBe(4401)
    }
  })

  test('executes nothing more, whatever the client still sends', async () => {
    const mine = await http.create(MINE)
    const { id, header } = await keyFor()
    const socket = await connectAs(url, `/conversations/${mine}/ws`, { headers: header })
    await socket.until(({ type }) => type === 'ready')
    await http.call('DELETE', `/keys/${id}`)
    const { log } = await http.bench.manager.open(mine)
    const { head } = log
    for (let sent = 0; sent < 20 && socket.ws.readyState === socket.ws.OPEN; sent++)
      socket.say({ type: 'message', message: { role: 'user', content: 'too late' } })
    await socket.closed
    expect(log.head).toBe(head)
  })
})

test('the first cursor of a limited key does not reveal whether others were active', async () => {
  const { header } = await keyFor({ user_id: 'user-cursors' })
  const readyCursor = async () => {
    const socket = await connectAs(url, '/firehose', { headers: header })
    const { cursor } = await socket.until(({ type }) => type === 'ready')
    socket.close()
    return cursor as string
  }
  const cursors = [await readyCursor(), await readyCursor()]
  expect(cursors[0]).not.toBe(cursors[1])
  const mine = await http.create({ user_id: 'user-cursors' })
  const stream = await subscribe(url, `/firehose?cursor=${cursors[1]}`, header)
  await stream.until(({ data }) => data.conversation_id === mine)
  stream.close()
})

describe('a socket whose key comes in its first frame', () => {
  test('gets the same refusals as over HTTP', async () => {
    const { key } = await keyFor()
    const theirs = await http.create(THEIRS)
    const socket = await connectAs(url, `/conversations/${theirs}/ws`, {})
    socket.say({ type: 'auth', token: key })
    expect(await socket.closed).toBe(4404)
    expect(socket.frames).toEqual([expect.objectContaining({ error: 'conversation_not_found' })])
  })

  test('needs the scope of each frame it sends', async () => {
    const mine = await http.create(MINE)
    const { header } = await keyFor({ scopes: ['read', 'approve'] })
    const socket = await connectAs(url, `/conversations/${mine}/ws`, { headers: header })
    const frames = [
      { type: 'message', message: { role: 'user', content: 'hello' } },
      { type: 'run' },
      { type: 'pause' },
      { type: 'task', title: 'a task', runnable: { type: 'Ticker' } },
      { type: 'cancel_task', task_id: mine },
      { type: 'answer', request_id: mine, answer: { kind: 'question', answers: { '0': 'yes' } } },
    ]
    for (const [id, frame] of frames.entries()) {
      socket.say({ ...frame, id: `${id}` })
      expect(await socket.until((answer) => answer.id === `${id}`)).toMatchObject({ error: 'forbidden' })
    }
    const decisions = [{ tool_use_id: 'a', input_hash: '0'.repeat(64), behavior: 'allow' }]
    socket.say({ type: 'answer', id: 'p', request_id: mine, answer: { kind: 'permission', decisions } })
    expect((await socket.until((answer) => answer.id === 'p')).error).toBe('request_not_found')
    socket.close()
  })

  test('that creates its conversation creates it for the user of its key', async () => {
    const { header } = await keyFor()
    const socket = await connectAs(url, '/conversations/ws?create=frame', { headers: header })
    const llm_config = { model: 'scripted', base_url: http.bench.model.baseUrl, api_key: 'the-key-of-a-model' }
    socket.say({ type: 'create', conversation: { llm_config } })
    const { conversation_id } = await socket.until(({ type }) => type === 'ready')
    expect((await http.call('GET', `/conversations/${conversation_id}`)).body).toMatchObject(MINE)
    socket.close()
    const reader = await keyFor({ scopes: ['read'] })
    await expect(connectAs(url, '/conversations/ws', { headers: reader.header })).rejects.toThrow(/403/)
  })
})
